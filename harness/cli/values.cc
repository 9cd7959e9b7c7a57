#include "harness/cli/values.h"

#include <cctype>
#include <cmath>
#include <cstdlib>

namespace warmgate::cli {

using verdict::Verdict;

std::optional<double> parse_seconds(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str() || !std::isfinite(value) || value <= 0) return std::nullopt;
  // strtod also reads hexadecimal and the like.
  for (const char* c = copy.c_str(); c != end; ++c) {
    if (std::string_view("0123456789.").find(*c) == std::string_view::npos) return std::nullopt;
  }
  std::string unit(end);
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size()
                                                                 : unit.find_first_not_of(' '));
  if (unit.empty() || unit == "s") return value;
  if (unit == "ms") return value / 1e3;
  if (unit == "min" || unit == "m") return value * 60;
  if (unit == "h") return value * 3600;
  return std::nullopt;
}

std::string check_date(const std::string& text) {
  const bool shaped = text.size() == 10 && text[4] == '-' && text[7] == '-';
  bool digits = shaped;
  for (std::size_t i = 0; shaped && i < text.size(); ++i)
    digits = digits && (i == 4 || i == 7 || std::isdigit(static_cast<unsigned char>(text[i])) != 0);
  if (!digits) return "'" + text + "' is not a date; write YYYY-MM-DD";
  const int month = std::stoi(text.substr(5, 2)), day = std::stoi(text.substr(8, 2));
  if (month < 1 || month > 12 || day < 1 || day > 31) return "'" + text + "' is not a date";
  return "";
}

Verdict verdict_of(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "fail") return Verdict::kFail;
  if (name == "inconclusive") return Verdict::kInconclusive;
  if (name == "infra") return Verdict::kInfra;
  return Verdict::kSkip;
}

}  // namespace warmgate::cli
