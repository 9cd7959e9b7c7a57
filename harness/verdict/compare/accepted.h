// The accepted set of a scenario: what a person has looked at and taken as it is. `new:` in a gate
// and set-growth count only what goes beyond it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/verdict/verdict.h"

namespace warmgate::verdict {

inline constexpr const char* kAcceptedSchema = "accepted/1.0";

struct AcceptedVariant {
  std::map<std::string, std::set<std::string>> sets;  // as RunRecord::sets
  std::map<std::string, double> counts;               // figures without a unit of time
};

struct Accepted {
  std::string scenario;
  std::map<std::string, AcceptedVariant> variants;  // by full variant name
  /// The variant, or its base name's; null if neither was accepted.
  const AcceptedVariant* find(std::string_view variant) const;
};

/// What these runs of one scenario showed; repeats of a variant are united. Runs that are infra or
/// skipped show nothing.
Accepted make_accepted(const std::vector<const RunRecord*>& runs);

/// An absent file is an empty set. Throws std::runtime_error naming the file if it is not JSON, of
/// another schema or of a higher major version; unknown fields are ignored.
Accepted read_accepted(const std::filesystem::path& file);
/// Replaces the file in one step (written beside it, then renamed). Throws std::runtime_error.
void write_accepted(const std::filesystem::path& file, const Accepted& accepted);

}  // namespace warmgate::verdict
