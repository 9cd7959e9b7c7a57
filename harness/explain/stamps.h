// Time stamps in the forms that engines and log stores print them. Each function looks at the
// start of `text` only and returns how many bytes the stamp takes, 0 if there is none; seconds are
// since 1970 (dates without a year: of the year 2000), fractions kept, zones applied where printed.
#pragma once

#include <cstddef>
#include <string_view>

#include "harness/explain/line.h"

namespace warmgate::explain::internal {

/// Of a day's beginning.
double date_seconds(int year, int month, int day);

/// `YYYY-MM-DD` `T` or space `HH:MM:SS` [`.` or `,` fraction] [`Z` or `±hh:mm`].
std::size_t iso_stamp(std::string_view text, double& seconds);
/// `MM-DD HH:MM:SS`[fraction], as vLLM prints it.
std::size_t month_day_stamp(std::string_view text, double& seconds);
/// `MM/DD/YYYY-HH:MM:SS`, as TensorRT-LLM prints it.
std::size_t slash_stamp(std::string_view text, double& seconds);
/// `HH:MM:SS`[fraction].
std::size_t clock_stamp(std::string_view text, double& seconds);
/// `M.SS.mmm.uuu` since the start of the process, as llama.cpp prints it.
std::size_t since_start_stamp(std::string_view text, double& seconds);
/// `MMDD HH:MM:SS`[fraction], glog and c10d.
std::size_t glog_stamp(std::string_view text, double& seconds);
/// `Jul  8 22:40:03`: a month in any language, without a year; the month itself is not understood.
std::size_t syslog_stamp(std::string_view text, double& seconds);

}  // namespace warmgate::explain::internal
