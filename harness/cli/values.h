// Values of options, as text: what is wrong with one, and what it means. Strict, because an unset
// variable in somebody's script arrives here as an empty word and must not mean a default.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/verdict/verdict.h"

namespace warmgate::cli {

/// Times are bounded like those of a scenario, so that no clock overflows.
inline constexpr double kLeastSeconds = 1e-3, kMostSeconds = 1e7;

/// "90", "90 s", "1.5min", "2h", "500ms" → seconds; nothing if it is none of these, or below 1 ms
/// or above 1e7 s.
std::optional<double> parse_seconds(std::string_view text);

/// What is wrong with a text as a value; "" if nothing. Whole numbers are decimal digits.
std::string whole_number_error(const std::string& text, long least, long most);
/// The same for a day, YYYY-MM-DD.
std::string check_date(const std::string& text);

/// "A,B" → A and B. Commas inside [] belong to a name (`A[x=1,y=2]`). An empty name stays one.
std::vector<std::string> split_names(std::string_view text);
/// The names of an option that may be repeated or hold a list; false if one is empty.
bool take_names(const std::vector<std::string>& words, std::vector<std::string>& out);

/// fail, inconclusive, infra or skip, in any case of letters; nothing for another word.
std::optional<verdict::Verdict> verdict_of(std::string name);

}  // namespace warmgate::cli
