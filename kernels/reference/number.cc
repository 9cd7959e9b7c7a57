#include "kernels/reference/number.h"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace warmgate::reference {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A sign, `exponent_bits` of exponent, `fraction_bits` of fraction: (1.f) 2^(e - bias), or
// (0.f) 2^(1 - bias) where the exponent field is zero.
double value_of(unsigned code, int exponent_bits, int fraction_bits, int bias) {
  const unsigned fractions = 1u << fraction_bits, exponents = 1u << exponent_bits;
  const unsigned fraction = code % fractions;
  const unsigned exponent = code / fractions % exponents;
  const bool negative = code / fractions / exponents % 2 == 1;
  const double digits = static_cast<double>(fraction) / fractions;
  const double magnitude = exponent == 0
                               ? std::ldexp(digits, 1 - bias)
                               : std::ldexp(1 + digits, static_cast<int>(exponent) - bias);
  return negative ? -magnitude : magnitude;
}

// All values of codes 0..last, ascending: the grid that codes are searched in. Computed once.
Vector grid_of(unsigned last, double (*value)(unsigned code)) {
  Vector out;
  for (unsigned code = 0; code <= last; ++code) out.push_back(value(code));
  return out;
}

// The code whose value is nearest to x >= 0; at equal distance the even one.
unsigned nearest(double x, const Vector& grid) {
  unsigned low = 0, high = static_cast<unsigned>(grid.size()) - 1;
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    (grid[middle] <= x ? low : high) = middle;
  }
  const double below = x - grid[low], above = grid[high] - x;
  if (below != above) return below < above ? low : high;
  return low % 2 == 0 ? low : high;
}

// Lowest byte first.
unsigned stored_integer(Bytes stored, std::size_t at, std::size_t bytes) {
  unsigned sum = 0;
  for (std::size_t i = bytes; i > 0; --i) {
    sum = sum * 256 + std::to_integer<unsigned>(stored[at + i - 1]);
  }
  return sum;
}

template <typename Value>
Vector decoded(Bytes stored, std::size_t bytes, Value&& value) {
  if (stored.size() % bytes != 0) throw std::invalid_argument("stored values: odd size");
  Vector out;
  for (std::size_t at = 0; at < stored.size(); at += bytes) {
    out.push_back(value(stored_integer(stored, at, bytes)));
  }
  return out;
}

double fp32_value(unsigned code) {
  const unsigned exponent = code / (1u << 23) % 256, fraction = code % (1u << 23);
  if (exponent != 255) return value_of(code, 8, 23, 127);
  if (fraction != 0) return kNaN;
  return code / (1u << 31) == 1 ? -kInfinity : kInfinity;
}

}  // namespace

double e4m3_value(std::uint8_t code) { return code % 128 == 127 ? kNaN : value_of(code, 4, 3, 7); }

std::uint8_t e4m3_code(double x) {
  if (std::isnan(x)) return 0x7F;
  static const Vector grid = grid_of(126, [](unsigned c) { return value_of(c, 4, 3, 7); });
  const unsigned code = nearest(std::fabs(x), grid);
  return static_cast<std::uint8_t>(code + (std::signbit(x) ? 128 : 0));
}

double bf16_value(std::uint16_t code) {
  const unsigned exponent = code / 128u % 256, fraction = code % 128u;
  if (exponent != 255) return value_of(code, 8, 7, 127);
  if (fraction != 0) return kNaN;
  return code / 32768u == 1 ? -kInfinity : kInfinity;
}

std::uint16_t bf16_code(double x) {
  if (std::isnan(x)) return 0x7FC0;
  // Beyond the largest value the grid goes on with 2^128, which stands for infinity.
  static const Vector grid = grid_of(255 * 128, [](unsigned c) { return value_of(c, 8, 7, 127); });
  const unsigned code = std::isinf(x) ? 255 * 128 : nearest(std::fabs(x), grid);
  return static_cast<std::uint16_t>(code + (std::signbit(x) ? 32768 : 0));
}

double bf16(double x) { return bf16_value(bf16_code(x)); }

Vector bf16(View x) {
  Vector out;
  for (const double value : x) out.push_back(bf16(value));
  return out;
}

double fp32(double x) { return static_cast<double>(static_cast<float>(x)); }

double ue8m0_value(std::uint8_t code) { return code == 255 ? kNaN : std::ldexp(1.0, code - 127); }

std::uint8_t ue8m0_code(int exponent) {
  if (exponent < -127 || exponent > 127) throw std::domain_error("ue8m0: exponent out of range");
  return static_cast<std::uint8_t>(exponent + 127);
}

double e2m1_value(std::uint8_t nibble) { return value_of(nibble % 16, 2, 1, 1); }

std::uint8_t e2m1_code(double x) {
  if (std::isnan(x)) throw std::domain_error("e2m1 has no NaN");
  static const Vector grid = grid_of(7, [](unsigned c) { return value_of(c, 2, 1, 1); });
  const unsigned code = nearest(std::fabs(x), grid);
  return static_cast<std::uint8_t>(code + (std::signbit(x) ? 8 : 0));
}

int scale_exponent(double amax, double floor, double largest) {
  const double wanted = std::isnan(amax) || amax > floor ? amax : floor;
  if (!std::isfinite(wanted)) throw std::domain_error("block scale of a value that is not finite");
  if (!(wanted > 0)) throw std::domain_error("block scale of zero without a floor");
  // Up from an exponent that is surely too small.
  int exponent = std::ilogb(wanted) - std::ilogb(largest) - 2;
  while (std::ldexp(largest, exponent) < wanted) ++exponent;
  return exponent;
}

Vector bf16_values(Bytes stored) {
  return decoded(stored, 2, [](unsigned c) { return bf16_value(static_cast<std::uint16_t>(c)); });
}

Vector fp32_values(Bytes stored) { return decoded(stored, 4, fp32_value); }

Vector e4m3_values(Bytes stored) {
  return decoded(stored, 1, [](unsigned c) { return e4m3_value(static_cast<std::uint8_t>(c)); });
}

}  // namespace warmgate::reference
