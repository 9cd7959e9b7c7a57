// Secrets are masked by value: wherever a token turns up (a log, an argument, an event), not only
// where its name does. What shows by its shape is masked too: harness/trace/secrets.h.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/trace/secrets.h"

namespace warmgate::target {

using trace::is_secret_name;
using trace::kMask;
using trace::kMinSecretBytes;
using trace::mask_part;

/// Values (at least 6 bytes) of the variables of `environ` (NAME=value, null-terminated) whose name
/// is a secret's, and what in any variable is one by its shape. Sorted, longest first.
std::vector<std::string> collect_secrets(const char* const* environ);

/// `text` with every secret replaced by kMask: those listed, and those that show by their shape.
/// Where secrets overlap, the whole stretch is.
std::string mask(std::string_view text, const std::vector<std::string>& secrets);

/// Every string in it; what shows by its shape is appended to `found`.
void mask_json(nlohmann::json& value, const std::vector<std::string>& secrets,
               std::vector<std::string>* found = nullptr);

/// Finds whether any secret occurs in a stream that comes in pieces, also one that is known by its
/// shape alone.
class SecretSpotter {
 public:
  /// Without `shapes` by value alone: a third of what reading a line costs.
  explicit SecretSpotter(const std::vector<std::string>& secrets, bool shapes = true);
  void feed(std::string_view bytes);
  bool seen() const;

 private:
  std::vector<std::string> needles_;  // as they are, and as JSON writes them
  std::size_t longest_ = 0;
  std::string carry_;
  void look_for_shapes(std::string_view bytes);
  static constexpr std::size_t kLongestLine = 64 * 1024;
  std::string line_;  // the last one, as far as it has come
  bool shapes_ = true, seen_ = false;
};

}  // namespace warmgate::target
