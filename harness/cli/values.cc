#include "harness/cli/values.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "harness/scenario/scalars.h"

namespace warmgate::cli {

std::optional<double> parse_seconds(std::string_view text) {
  // strtod also reads signs, hexadecimal, exponents and words; none of them is a time.
  const std::size_t length = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string number(text.substr(0, length));
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || end != number.c_str() + number.size()) return std::nullopt;
  std::string_view unit = text.substr(length);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  double factor = 0;
  if (unit.empty() || unit == "s") factor = 1;
  if (unit == "ms") factor = 1e-3;
  if (unit == "min" || unit == "m") factor = 60;
  if (unit == "h") factor = 3600;
  const double seconds = value * factor;
  if (!(seconds >= kLeastSeconds && seconds <= kMostSeconds)) return std::nullopt;
  return seconds;
}

std::string whole_number_error(const std::string& text, long least, long most) {
  long value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  const bool leading_zero = text.size() > 1 && text[0] == '0';
  if (!text.empty() && error == std::errc() && end == last && !leading_zero && text != "-0" &&
      value >= least && value <= most)
    return "";
  return "'" + text + "' is no whole number from " + std::to_string(least) + " to " +
         std::to_string(most);
}

std::string check_date(const std::string& text) {
  return scenario::is_date(text) ? "" : "'" + text + "' is not a date; write YYYY-MM-DD";
}

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ',' && depth <= 0) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

bool take_names(const std::vector<std::string>& words, std::vector<std::string>& out) {
  for (const std::string& word : words) {
    for (std::string& name : split_names(word)) {
      if (name.empty()) return false;
      out.push_back(std::move(name));
    }
  }
  return true;
}

std::optional<verdict::Verdict> verdict_of(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "fail") return verdict::Verdict::kFail;
  if (name == "inconclusive") return verdict::Verdict::kInconclusive;
  if (name == "infra") return verdict::Verdict::kInfra;
  if (name == "skip") return verdict::Verdict::kSkip;
  return std::nullopt;
}

}  // namespace warmgate::cli
