// The engine's numeric checks as values: judged by the contract, shown as figures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/contract/view.h"

namespace warmgate::contract {

/// Largest row error ‖out − reference‖₂ / ‖reference‖₂ that counts as agreement: half of bf16's
/// last place (2^-9) four times over, for the roundings on the way to an output.
inline constexpr double kNumericLimit = 1.0 / 128;

/// One `check` event of kind numerics, which may stand for `count` comparisons with its worst.
struct NumericCheck {
  std::size_t event = 0;  // index into the trace
  int rank = 0, layer = -1;
  std::string tensor, layer_kind, role, phase;
  bool exact = false;  // integers, bytes, layouts: nothing may differ
  double error = 0;    // worst row; NaN if it was no number
  double limit = 0;    // at most kNumericLimit
  std::int64_t mismatches = 0, poisoned = 0, count = 1;
};

std::vector<NumericCheck> numeric_checks(const View& view);

}  // namespace warmgate::contract
