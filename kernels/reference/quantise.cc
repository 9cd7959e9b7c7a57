#include "kernels/reference/quantise.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/reference/number.h"

namespace warmgate::reference {
namespace {

// Of what the value may round to (a little less, itself, a little more), the one nearest to what is
// stored.
template <typename Round>
double nearest_right(double exact, double stored, double slack, Round&& round) {
  double best = round(exact);
  for (const double moved : {exact - slack, exact + slack}) {
    const double candidate = round(moved);
    if (std::fabs(candidate - stored) < std::fabs(best - stored)) best = candidate;
  }
  return best;
}

template <typename Code, typename Value>
Vector expected(View exact, View stored_unscaled, int stored_exponent, double floor, double largest,
                double slack, bool bf16_first, Code&& code, Value&& value) {
  if (stored_unscaled.size() != exact.size()) {
    throw std::invalid_argument("expected: sizes differ");
  }
  const auto first = [&](double x) { return bf16_first ? bf16(x) : x; };
  const double amax = reference::largest(exact);
  int exponent = scale_exponent(first(amax), floor, largest);
  for (const double moved : {amax - slack, amax + slack}) {
    const int other = scale_exponent(first(moved), floor, largest);
    if (other == stored_exponent) exponent = other;
  }
  const double scale = std::pow(2.0, exponent), stored_scale = std::pow(2.0, stored_exponent);
  Vector out;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    out.push_back(nearest_right(exact[i], stored_unscaled[i] * stored_scale, slack, [&](double x) {
      return value(code(std::clamp(first(x) / scale, -largest, largest))) * scale;
    }));
  }
  return out;
}

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

double Quantised::scale() const { return std::ldexp(1.0, exponent); }

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

Vector expected_e4m3(View exact, View stored_unscaled, int stored_exponent, double floor,
                     double slack, bool bf16_first) {
  return expected(exact, stored_unscaled, stored_exponent, floor, 448, slack, bf16_first, e4m3_code,
                  e4m3_value);
}

Vector expected_e2m1(View exact, View stored_unscaled, int stored_exponent, double slack,
                     bool bf16_first) {
  return expected(exact, stored_unscaled, stored_exponent, 6 * std::pow(2.0, -126), 6, slack,
                  bf16_first, e2m1_code, e2m1_value);
}

Vector expected_bf16(View exact, View stored, double slack) {
  if (stored.size() != exact.size()) throw std::invalid_argument("expected: sizes differ");
  Vector out;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    out.push_back(nearest_right(exact[i], stored[i], slack, [](double x) { return bf16(x); }));
  }
  return out;
}

double largest(View x) {
  double out = 0;
  for (const double value : x) out = std::max(out, std::fabs(value));
  return out;
}

}  // namespace warmgate::reference
