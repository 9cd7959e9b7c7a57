// Two logs of the same engine, phase by phase: where they part, what took longer, what came out
// smaller, what was left out or complained of in one of them only.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/explain/reading.h"

namespace warmgate::explain {

struct PhaseDifference {
  std::string phase;
  int times_a = 0, times_b = 0;  // how often the log enters it
  /// Where it does not: the log shows a later phase, so this one was passed before the log begins,
  /// without a word, or was left out. Otherwise the start did not come so far.
  bool passed_a = false, passed_b = false;
  /// Seconds by each log's own clock, which may show whole seconds only; nothing without one.
  std::optional<double> seconds_a, seconds_b;
};

struct FigureDifference {
  std::string name;
  nlohmann::json a, b;             // null where one log lacks it
  std::optional<double> per_cent;  // of a, for numbers
};

/// Lines of one sort that only one of the logs has, numbers and addresses aside.
struct OnlyIn {
  char side = 'b';   // a or b
  std::string sort;  // skip, swallowed, compile, hang, outside, cause, noise
  std::string text;
  std::int64_t line = 0;
};

struct Comparison {
  /// Where the two first do something different, in words; "" where they never do.
  std::string divergence;
  /// Which of the two begins in the middle, in words; "" where none does.
  std::string begins;
  std::vector<PhaseDifference> phases;
  std::vector<FigureDifference> figures;  // only those that differ
  std::vector<OnlyIn> only;
  bool same_engine = true, same_version = true;
};

Comparison compare(const Reading& a, const Reading& b);
nlohmann::ordered_json to_json(const Comparison& comparison);

/// Text with numbers, hexadecimal addresses and paths' numbers replaced by <n>, so that two runs of
/// one program say the same.
std::string without_numbers(std::string_view text);

}  // namespace warmgate::explain
