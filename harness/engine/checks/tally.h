// What comparisons found, folded into `check` events of kind numerics: one line at once where a
// comparison is over its limit, one a (phase, tensor, layer kind, role) with the worst at its end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "harness/engine/recorder.h"
#include "kernels/reference/compare.h"

namespace warmgate::engine::checks {

/// A single rounding to bf16 moves no value by more than this; what has no other source of error is
/// held to it, so that one key too many or too few shows.
inline constexpr double kOneRounding = 1.0 / 256;

/// One comparison: some rows of one tensor of one layer in one step.
struct Comparison {
  std::string_view tensor;
  LayerRef layer;
  bool exact = false;  // integers, bytes, layout: `mismatches` counts
  std::int64_t rows = 0;
  double limit = reference::kRowLimit;
  double error = 0;  // worst row, ‖out − ref‖₂/‖ref‖₂; infinite where a value is not finite
  std::int64_t mismatches = 0, poisoned = 0;  // elements
  std::string message;                        // what is wrong, where a number does not say it
};

class Tally {
 public:
  explicit Tally(Recorder& recorder) : recorder_(recorder) {}
  void add(const Comparison& comparison, std::int64_t step);
  /// Sends the worst of each; call before the recorder's phase_end. Events: tensor, kind, phase,
  /// layer and step of the worst, layer_kind, role, rows and count over all, error, limit, exact,
  /// mismatches, poisoned, final true.
  void end_phase();

 private:
  struct Worst {
    Comparison comparison;  // error, layer and message of the worst; sums of the rest
    std::int64_t step = 0, count = 0;
    bool failed = false;
  };
  void tell(const Worst& worst, bool final) const;
  Recorder& recorder_;
  std::map<std::tuple<std::string, std::string, std::string>, Worst, std::less<>> worst_;
};

/// Over its limit, or an element differs, or poison is left.
bool failed(const Comparison& comparison);

}  // namespace warmgate::engine::checks
