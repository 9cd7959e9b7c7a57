// Numbers as a person reads them: grouped, with their units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warmgate::trace {

/// 9222468 → "9,222,468".
std::string grouped(std::int64_t value);

/// A figure as a person reads it: integers grouped, bytes in binary units beside them, seconds and
/// ratios with a sensible number of digits. The unit is that of the vocabulary's figures.
/// `unit` overrides it, for figures that come from metric files. Without `exact`, bytes are
/// rounded: "88.48 GiB".
std::string figure_text(std::string_view name, double value, std::string_view unit = "",
                        bool exact = true);

/// "0.34 ms", "45 ms", "1.23 s", "2 min 5 s"; "?" for what is no duration.
std::string duration_text(double seconds);

/// figure_text(), exact, with the unit of every figure beside it: "9,222,468 tokens", "712 ms".
std::string quantity_text(std::string_view name, double value, std::string_view unit = "");

}  // namespace warmgate::trace
