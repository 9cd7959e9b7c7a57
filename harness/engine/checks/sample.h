// Which steps, rows, columns and heads are compared. Deterministic: the same run compares the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/engine/layers/step_host.h"

namespace warmgate::engine::checks {

enum class Extent : std::uint8_t { kSampled, kAll };

/// Of a step: which tokens' rows. Empty: the step is not compared.
/// Sampled: the first steps of each kind of step of a phase (decodes, prefills or both, several or
/// one, dummy or not, short enough for the indexer to choose all or not, and whether a token ends a
/// window of 4 or 128 or begins a page), and of those the first token, the last, and one at such a
/// boundary.
class Sampler {
 public:
  static constexpr int kStepsOfAKind = 2, kStepsOfAPhase = 40;
  explicit Sampler(Extent extent, int steps_of_a_kind = kStepsOfAKind)
      : extent_(extent), steps_of_a_kind_(steps_of_a_kind) {}
  /// Counts the step as compared if it is.
  std::vector<std::int64_t> rows(const StepHost& step, const std::string& phase, const Dims& dims);

 private:
  Extent extent_;
  int steps_of_a_kind_;
  std::string phase_;
  int taken_ = 0;
  std::map<std::uint64_t, int> seen_;  // kind of step → steps compared
};

/// Of `n` columns (or rows of a weight): all, or at most `most`: first, last and some between that
/// move with `salt`. Ascending, no two the same.
std::vector<std::int64_t> spread(std::int64_t n, std::int64_t most, std::uint64_t salt);

}  // namespace warmgate::engine::checks
