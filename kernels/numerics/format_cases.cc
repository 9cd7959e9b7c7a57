// Number formats: every code, every midpoint and its neighbours. All exact.
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/formats.h"
#include "kernels/numerics/cases.h"
#include "kernels/reference/number.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

// Equal values, equal signs of zero, or both NaN.
bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

void values(Random&, Table& table) {
  std::int64_t e4m3 = 0, bf16 = 0, e2m1 = 0, ue8m0 = 0;
  for (unsigned c = 0; c < 256; ++c) {
    const auto code = static_cast<std::uint8_t>(c);
    e4m3 += same(cpu::e4m3_to_float(code), ref::e4m3_value(code)) ? 0 : 1;
    ue8m0 += same(cpu::ue8m0_to_float(code), ref::ue8m0_value(code)) ? 0 : 1;
  }
  for (unsigned c = 0; c < 16; ++c) {
    const auto code = static_cast<std::uint8_t>(c);
    e2m1 += same(cpu::e2m1_to_float(code), ref::e2m1_value(code)) ? 0 : 1;
  }
  for (unsigned c = 0; c < 65536; ++c) {
    const auto code = static_cast<std::uint16_t>(c);
    bf16 += same(cpu::to_float(code), ref::bf16_value(code)) ? 0 : 1;
  }
  table.exact("format: e4m3 values", "all 256 codes", e4m3);
  table.exact("format: bf16 values", "all 65536 codes", bf16);
  table.exact("format: e2m1 values", "all 16 codes", e2m1);
  table.exact("format: ue8m0 values", "all 256 codes", ue8m0);
}

// Each grid point, the midpoints, their fp32 neighbours, both signs, and what lies outside.
template <typename Op, typename Oracle>
std::int64_t rounding(Random& random, const std::vector<double>& grid, Op&& op, Oracle&& oracle) {
  std::vector<float> inputs{0.0F, 1e-30F, 1e30F, std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::denorm_min()};
  for (std::size_t i = 0; i + 1 < grid.size(); ++i) {
    for (const double at : {grid[i], (grid[i] + grid[i + 1]) / 2}) {
      const auto x = static_cast<float>(at);
      for (const float y : {x, std::nextafter(x, 0.0F), std::nextafter(x, 1e38F)}) {
        inputs.push_back(y);
      }
    }
    inputs.push_back(static_cast<float>(
        grid[i] + (grid[i + 1] - grid[i]) * static_cast<double>(random.integer(1, 999)) / 1000));
  }
  std::int64_t out = 0;
  for (const float x : inputs) {
    out += op(x) != oracle(static_cast<double>(x)) ? 1 : 0;
    out += op(-x) != oracle(-static_cast<double>(x)) ? 1 : 0;
  }
  return out;
}

void roundings(Random& random, Table& table) {
  std::vector<double> e4m3, bf16, e2m1;
  for (unsigned c = 0; c < 127; ++c) e4m3.push_back(ref::e4m3_value(static_cast<std::uint8_t>(c)));
  for (unsigned c = 0; c < 8; ++c) e2m1.push_back(ref::e2m1_value(static_cast<std::uint8_t>(c)));
  for (unsigned c = 0; c < 0x7F80; c += 1 + c % 3) {
    bf16.push_back(ref::bf16_value(static_cast<std::uint16_t>(c)));
  }
  // Neighbouring codes, so that midpoints are midpoints.
  for (unsigned c = 0x3F00; c < 0x4100; ++c) {
    bf16.push_back(ref::bf16_value(static_cast<std::uint16_t>(c)));
  }
  table.exact("format: e4m3 rounding", "grid, midpoints, neighbours, beyond",
              rounding(
                  random, e4m3, [](float x) { return cpu::to_e4m3(x); }, ref::e4m3_code));
  table.exact("format: e2m1 rounding", "grid, midpoints, neighbours, beyond",
              rounding(
                  random, e2m1, [](float x) { return cpu::to_e2m1(x); }, ref::e2m1_code));
  table.exact("format: bf16 rounding", "grid, midpoints, neighbours, beyond",
              rounding(
                  random, bf16, [](float x) { return cpu::to_bf16(x); }, ref::bf16_code));
}

void block_scales(Random&, Table& table) {
  std::int64_t e4m3 = 0, operand = 0, e2m1 = 0, inverse = 0;
  for (unsigned c = 0; c < 0x7F80; ++c) {
    const float amax = static_cast<float>(ref::bf16_value(static_cast<std::uint16_t>(c)));
    // fp32 just above and below as well: the division must not swallow the difference.
    for (const float x : {amax, std::nextafter(amax, 0.0F), std::nextafter(amax, 3e38F)}) {
      e4m3 += cpu::scale_byte(x, 1e-4F, 448) != ref::scale_exponent(x, 1e-4, 448) + 127 ? 1 : 0;
      operand += cpu::scale_byte(x, 1e-10F, 448) != ref::scale_exponent(x, 1e-10, 448) + 127;
      e2m1 += cpu::scale_byte(x, 6 * 0x1p-126F, 6) !=
              ref::scale_exponent(x, 6 * std::pow(2.0, -126), 6) + 127;
    }
  }
  for (unsigned byte = 1; byte < 254; ++byte) {
    const auto b = static_cast<std::uint8_t>(byte);
    inverse += static_cast<double>(cpu::inverse_scale(b)) * ref::ue8m0_value(b) != 1 ? 1 : 0;
  }
  table.exact("format: scale, floor 1e-4", "every bf16 amax and its fp32 neighbours", e4m3);
  table.exact("format: scale, floor 1e-10", "every bf16 amax and its fp32 neighbours", operand);
  table.exact("format: scale of e2m1", "every bf16 amax and its fp32 neighbours", e2m1);
  table.exact("format: inverse scale", "bytes 1..253", inverse);
}

}  // namespace

std::vector<Case> format_cases() {
  return {{"format_values", values, true},
          {"format_rounding", roundings, true},
          {"block_scales", block_scales, true}};
}

}  // namespace warmgate::numerics
