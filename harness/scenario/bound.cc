// Bounds of expect: x, > x, >= x, < x, <= x, a..b, x ± p%.
#include <fmt/format.h>

#include <cmath>

#include "harness/scenario/problems.h"
#include "harness/scenario/scalars.h"

namespace warmgate::scenario {

bool Bound::holds(double value) const {
  if (std::isnan(value)) return false;
  switch (op) {
    case Op::kEqual:
      return value == low;
    case Op::kGreater:
      return value > low;
    case Op::kGreaterEqual:
      return value >= low;
    case Op::kLess:
      return value < low;
    case Op::kLessEqual:
      return value <= low;
    case Op::kRange:
      return low <= value && value <= high;
    case Op::kTolerance:
      return std::abs(value - low) <= std::abs(low) * high / 100;
  }
  return false;
}

namespace {

constexpr std::string_view kForms = "x, > x, >= x, < x, <= x, a..b or x ± p%";

Reading<Bound> refuse(const std::string& why) {
  return {std::nullopt, why + fmt::format("; a bound is {}", kForms)};
}

Reading<Bound> one_sided(Bound bound, std::string_view rest, std::string_view unit) {
  const auto value = read_quantity(rest, unit);
  if (!value) return refuse(value.why);
  bound.low = *value.value;
  return {bound, ""};
}

}  // namespace

Reading<Bound> read_bound(std::string_view text, std::string_view unit) {
  Bound bound;
  bound.text = std::string(text);
  using Op = Bound::Op;
  static constexpr std::pair<std::string_view, Op> kSigns[] = {
      {">=", Op::kGreaterEqual}, {"<=", Op::kLessEqual}, {">", Op::kGreater}, {"<", Op::kLess}};
  for (const auto& [sign, op] : kSigns) {
    if (text.substr(0, sign.size()) != sign) continue;
    bound.op = op;
    return one_sided(bound, text.substr(sign.size()), unit);
  }
  for (const std::string_view sign : {std::string_view("±"), std::string_view("+-")}) {
    const std::size_t at = text.find(sign);
    if (at == std::string_view::npos) continue;
    bound.op = Op::kTolerance;
    const std::string_view tolerance = text.substr(at + sign.size());
    const auto percent = read_quantity(tolerance, "%");
    if (tolerance.find('%') == std::string_view::npos || !percent || *percent.value < 0) {
      return refuse(fmt::format("the tolerance {} is not a per cent", shown(tolerance)));
    }
    bound.high = *percent.value;
    return one_sided(bound, text.substr(0, at), unit);
  }
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return one_sided(bound, text, unit);
  bound.op = Op::kRange;
  const auto high = read_quantity(text.substr(dots + 2), unit);
  if (!high) return refuse(high.why);
  bound.high = *high.value;
  auto out = one_sided(bound, text.substr(0, dots), unit);
  if (out && out.value->low > out.value->high) return refuse(shown(text) + " is an empty range");
  return out;
}

}  // namespace warmgate::scenario
