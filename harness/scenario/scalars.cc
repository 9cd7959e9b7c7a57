#include "harness/scenario/scalars.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>

#include "harness/scenario/problems.h"

namespace warmgate::scenario {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Length of the number at the start of `text`: -?digits[.digits][e[+-]digits]; 0 = none.
std::size_t number_length(std::string_view text) {
  std::size_t i = !text.empty() && text[0] == '-' ? 1 : 0;
  const auto digits = [&] {
    const std::size_t begin = i;
    while (i < text.size() && digit(text[i])) ++i;
    return i > begin;
  };
  if (!digits()) return 0;
  if (i + 1 < text.size() && text[i] == '.' && digit(text[i + 1])) {
    ++i;
    digits();
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    const std::size_t mantissa = i++;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (!digits()) i = mantissa;
  }
  return i;
}

bool leading_zero(std::string_view number) {
  if (!number.empty() && number[0] == '-') number.remove_prefix(1);
  return number.size() > 1 && number[0] == '0' && digit(number[1]);
}

template <typename T>
Reading<T> no(std::string why) {
  return {std::nullopt, std::move(why)};
}

Reading<double> to_double(std::string_view number) {
  if (leading_zero(number)) {
    return no<double>(shown(number) + " has a leading zero; numbers are decimal, drop the zero");
  }
  double value = 0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  if (result.ec != std::errc{} || !std::isfinite(value)) {
    return no<double>(shown(number) + " is too large or too small for a number");
  }
  return {value, ""};
}

struct Suffix {
  std::string_view word;
  double factor;
};
const std::vector<Suffix>& suffixes(std::string_view unit) {
  static const std::vector<Suffix> bytes = {
      {"B", 1},           {"KB", 1e3},           {"MB", 1e6},
      {"GB", 1e9},        {"TB", 1e12},          {"KiB", 1024.0},
      {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
  static const std::vector<Suffix> seconds = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
                                              {"s", 1},     {"min", 60},  {"h", 3600}};
  static const std::vector<Suffix> percent = {{"%", 1}};
  static const std::vector<Suffix> none;
  return unit == "bytes" ? bytes : unit == "s" ? seconds : unit == "%" ? percent : none;
}

std::vector<std::string> words(std::string_view unit) {
  std::vector<std::string> out;
  for (const Suffix& suffix : suffixes(unit)) out.emplace_back(suffix.word);
  if (out.empty() && !unit.empty()) out.emplace_back(unit);
  return out;
}

}  // namespace

Reading<std::int64_t> read_integer(std::string_view text) {
  using I = std::int64_t;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o' || text[1] == 'b')) {
    return no<I>("expected a decimal integer, got " + shown(text));
  }
  std::string digits;
  for (const char c : text) digits += c == '_' || c == ',' ? "" : std::string(1, c);
  const std::size_t length = number_length(text);
  if (length != text.size() || text.empty()) {
    if (digits != text && number_length(digits) == digits.size()) {
      return no<I>("expected an integer, got " + shown(text) + "; write " + digits);
    }
    const std::string_view rest = trim(text.substr(length));
    if (length > 0 &&
        (rest == "%" || (!rest.empty() && std::isalpha(static_cast<unsigned char>(rest[0]))))) {
      return no<I>("expected an integer without a unit, got " + shown(text));
    }
    return no<I>("expected an integer, got " + shown(text));
  }
  if (leading_zero(text)) {
    return no<I>(shown(text) +
                 " has a leading zero, which YAML 1.1 takes for octal; integers are "
                 "decimal, drop the zero");
  }
  if (text.find_first_of(".eE") != std::string_view::npos) {
    const auto real = to_double(text);
    if (real && std::abs(*real.value) <= static_cast<double>(kMaxInteger) &&
        *real.value == std::floor(*real.value)) {
      return no<I>(fmt::format("expected an integer, got {}; write {}", shown(text),
                               static_cast<I>(*real.value)));
    }
    return no<I>("expected an integer, got " + shown(text));
  }
  I value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || value > kMaxInteger || value < -kMaxInteger) {
    return no<I>(fmt::format("{} is beyond {}, the largest integer", shown(text), kMaxInteger));
  }
  return {value, ""};
}

Reading<double> read_real(std::string_view text) {
  if (text.empty() || number_length(text) != text.size()) {
    return no<double>("expected a number, got " + shown(text));
  }
  return to_double(text);
}

Reading<bool> read_bool(std::string_view text) {
  if (text == "true") return {true, ""};
  if (text == "false") return {false, ""};
  return no<bool>("expected true or false, got " + shown(text));
}

Reading<double> read_quantity(std::string_view text, std::string_view unit) {
  text = trim(text);
  const std::size_t length = number_length(text);
  const std::string allowed = words(unit).empty() ? "a number"
                              : suffixes(unit).empty()
                                  ? fmt::format("a number of {}", unit)
                                  : "a number with one of " + list_of(words(unit));
  if (length == 0) return no<double>("expected " + allowed + ", got " + shown(text));
  auto number = to_double(text.substr(0, length));
  const std::string_view word = trim(text.substr(length));
  if (!number || word.empty() || word == unit) return number;
  for (const Suffix& suffix : suffixes(unit)) {
    if (suffix.word != word) continue;
    const double value = *number.value * suffix.factor;
    if (!std::isfinite(value)) return no<double>(shown(text) + " is too large");
    return {value, ""};
  }
  return no<double>("unit " + shown(word) + " does not fit; expected " + allowed +
                    did_you_mean(word, words(unit)));
}

Reading<std::int64_t> read_bytes(std::string_view text) {
  using I = std::int64_t;
  text = trim(text);
  // Without a unit it is an integer like any other, so 1e9 and 010 are refused.
  if (text.empty() || text.find_first_not_of("-+.eE_0123456789") == std::string_view::npos) {
    return read_integer(text);
  }
  const auto quantity = read_quantity(text, "bytes");
  if (!quantity) return no<I>(quantity.why);
  if (std::abs(*quantity.value) > static_cast<double>(kMaxInteger)) {
    return no<I>(fmt::format("{} is beyond {} bytes", shown(text), kMaxInteger));
  }
  if (*quantity.value != std::floor(*quantity.value)) {
    return no<I>(shown(text) + " is no whole number of bytes");
  }
  return {static_cast<I>(*quantity.value), ""};
}

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (const std::size_t i : {0, 1, 2, 3, 5, 6, 8, 9}) {
    if (!digit(text[i])) return false;
  }
  const auto part = [&](std::size_t at, std::size_t length) {
    int value = 0;
    std::from_chars(text.data() + at, text.data() + at + length, value);
    return value;
  };
  const std::chrono::year_month_day day{std::chrono::year{part(0, 4)},
                                        std::chrono::month{static_cast<unsigned>(part(5, 2))},
                                        std::chrono::day{static_cast<unsigned>(part(8, 2))}};
  return day.ok();
}

bool is_architecture(std::string_view text) {
  if (text.substr(0, 3) != "sm_") return false;
  text.remove_prefix(3);
  if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) text.remove_suffix(1);
  if (text.size() < 2 || text.size() > 3 || text[0] == '0') return false;
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace warmgate::scenario
