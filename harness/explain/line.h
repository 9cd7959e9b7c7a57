// One line of a log after everything that is not its message was taken off.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace warmgate::explain::internal {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// How the line's own time and level were written; some forms belong to one engine.
enum class Form {
  kNone,
  kVllm,        // INFO 07-02 09:00:01 [core.py:112] …
  kSglang,      // [2025-11-30 13:00:00] …
  kSglangRank,  // [2025-11-30 13:00:09 TP0] …
  kTrt,         // [01/15/2026-07:00:02] [TRT-LLM] [I] …
  kTrtCpp,      // [TensorRT-LLM][INFO] …
  kTurbomind,   // [TM][INFO] …
  kLmdeploy,    // 2025-… - lmdeploy - INFO - …
  kLlama,       // 0.00.050.100 I …
  kTgi,         // 2025-…Z  INFO target: …
  kPython,      // 2025-… - name - INFO - …
  kC10d,        // [rank0]:[W1208 08:30:14.0 ProcessGroupNCCL.cpp:1524] …
  kGlog,        // I0102 03:04:05.123456 …
  kUvicorn,     // INFO:     …
  kForms,
};

enum class Level { kNone, kDebug, kInfo, kWarning, kError };

/// What a stamp counts from. Only a date with its year says when something was.
enum class Origin {
  kNone,
  kYear,      // 1970: a date with its year
  kDate,      // the beginning of the year 2000, for a date without one
  kDay,       // the day before a month's first: day and time without a month
  kMidnight,  // a time of day alone
  kStart,     // the start of the process
  kOrigins,
};

inline constexpr double kNoTime = std::numeric_limits<double>::quiet_NaN();
inline bool has_time(double seconds) { return !std::isnan(seconds); }

/// Views into the bytes that were read or into the text layer's scratch memory: valid until the
/// next line.
struct Line {
  std::string_view text;     // without colours and wrappers, prefixes kept
  std::string_view message;  // what grammars see
  std::string_view worker;   // innermost label, as printed: Worker_TP0, TP2, rank=1, …
  std::int64_t pid = -1;
  std::string_view tag;    // file.py:123
  std::uint8_t depth = 0;  // process prefixes
  Form form = Form::kNone;
  Level level = Level::kNone;
  double inner_s = kNoTime;  // the engine's own stamp
  double outer_s = kNoTime;  // the wrapper's
  Origin inner_from = Origin::kNone, outer_from = Origin::kNone;
  int repeated = 1;        // for how many lines of a Ray cluster it stands
  std::string_view clock;  // HH:MM:SS as printed by the engine
};

}  // namespace warmgate::explain::internal
