#include "kernels/reference/quantise.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/reference/number.h"

namespace warmgate::reference {
namespace {

template <typename Code, typename Value>
Quantised quantised(View x, double floor, double largest, Code&& code, Value&& value) {
  double amax = 0;
  for (const double v : x) {
    if (std::isnan(v)) throw std::domain_error("quantise: NaN");
    amax = std::max(amax, std::fabs(v));
  }
  Quantised out;
  out.exponent = scale_exponent(amax, floor, largest);
  for (const double v : x) {
    out.codes.push_back(code(std::clamp(v / out.scale(), -largest, largest)));
    out.unscaled.push_back(value(out.codes.back()));
    out.values.push_back(out.unscaled.back() * out.scale());
  }
  return out;
}

}  // namespace

double Quantised::scale() const { return std::pow(2.0, exponent); }

Quantised quantise_e4m3(View x, double floor) {
  return quantised(x, floor, 448, e4m3_code, e4m3_value);
}

Quantised quantise_e2m1(View x) {
  return quantised(x, 6 * std::pow(2.0, -126), 6, e2m1_code, e2m1_value);
}

Vector through_e4m3(View x, std::int64_t run, double floor) {
  const auto size = static_cast<std::size_t>(run);
  if (size == 0 || x.size() % size != 0) throw std::invalid_argument("quantise: not whole runs");
  Vector out;
  for (std::size_t at = 0; at < x.size(); at += size) {
    const Vector values = quantise_e4m3(x.subspan(at, size), floor).values;
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

}  // namespace warmgate::reference
