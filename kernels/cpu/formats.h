// Number formats, bit by bit: bf16, e4m3fn, e2m1, ue8m0. All roundings to nearest, ties to even.
// Origin: OCP 8-bit Floating Point Specification (E4M3: no infinity, NaN = S.1111.111, max 448),
// OCP Microscaling Formats (E2M1, E8M0).
#pragma once

#include <bit>
#include <cstdint>

// Into every loop, so that each variant of a kernel gets its own vector code (variant.h).
#define WG_CPU_INLINE [[gnu::always_inline]] inline

namespace warmgate::kernels::cpu {

using Bf16 = std::uint16_t;    // the upper half of an fp32
using E4m3 = std::uint8_t;     // fp8
using Ue8m0 = std::uint8_t;    // 2^(byte-127); 255 is NaN
using Nibbles = std::uint8_t;  // two e2m1 values, the even element in the low nibble

constexpr float kE4m3Max = 448.0F;
constexpr float kE2m1Max = 6.0F;

WG_CPU_INLINE constexpr float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}
/// NaN stays NaN (quiet, sign kept); what exceeds the range becomes infinity.
WG_CPU_INLINE constexpr Bf16 to_bf16(float value) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (u + 0x7FFFU + ((u >> 16) & 1U)) >> 16;
  const bool nan = (u & 0x7FFFFFFFU) > 0x7F800000U;
  return static_cast<Bf16>(nan ? (u >> 16) | 0x40U : rounded);
}
WG_CPU_INLINE constexpr float round_to_bf16(float value) { return to_float(to_bf16(value)); }

/// 0x7F and 0xFF are NaN.
WG_CPU_INLINE constexpr float e4m3_to_float(E4m3 value) {
  const std::uint32_t magnitude = value & 0x7FU;
  const float normal = std::bit_cast<float>((magnitude << 20) + (120U << 23));
  // Exponent 0: put the three bits behind an implicit one and take the one away again.
  const float subnormal = std::bit_cast<float>((magnitude << 20) + (121U << 23)) - 0x1p-6F;
  const float nan = std::bit_cast<float>(0x7FC00000U);
  const float positive = magnitude == 0x7FU ? nan : magnitude < 8 ? subnormal : normal;
  const std::uint32_t sign = (value & 0x80U) << 24;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(positive) | sign);
}
/// Saturates: what exceeds 448, infinity too, becomes ±448. NaN becomes NaN.
WG_CPU_INLINE constexpr E4m3 to_e4m3(float value) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t a = u & 0x7FFFFFFFU;
  const std::uint32_t sign = (u >> 24) & 0x80U;
  const std::uint32_t normal = ((a + 0x7FFFFU + ((a >> 20) & 1U)) >> 20) - (120U << 3);
  // Below 2^-6 the spacing is 2^-9, which is that of floats at 2^14: adding rounds.
  const float shifted = std::bit_cast<float>(a < 0x3C800000U ? a : 0U) + 0x1p14F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x46800000U;
  std::uint32_t out = a < 0x3C800000U ? subnormal : a >= 0x43E00000U ? 0x7EU : normal;
  if (a > 0x7F800000U) out = 0x7FU;
  return static_cast<E4m3>(out | sign);
}

constexpr float kE2m1Values[16] = {0,     0.5F,  1,  1.5F,  2,  3,  4,  6,
                                   -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
/// Of the low four bits.
WG_CPU_INLINE constexpr float e2m1_to_float(std::uint8_t nibble) {
  return kE2m1Values[nibble & 15U];
}
/// Saturates at ±6; NaN becomes 6, as e2m1 has none (what NVIDIA's satfinite conversion gives).
WG_CPU_INLINE constexpr std::uint8_t to_e2m1(float value) {
  const float a = value < 0 ? -value : value;
  std::uint32_t code = 7;  // the thresholds lie midway; ties go to the even code
  if (a <= 0.25F) {
    code = 0;
  } else if (a < 0.75F) {
    code = 1;
  } else if (a <= 1.25F) {
    code = 2;
  } else if (a < 1.75F) {
    code = 3;
  } else if (a <= 2.5F) {
    code = 4;
  } else if (a < 3.5F) {
    code = 5;
  } else if (a <= 5.0F) {
    code = 6;
  }
  const bool negative = (std::bit_cast<std::uint32_t>(value) >> 31) != 0 && value == value;
  return static_cast<std::uint8_t>(code | (negative ? 8U : 0U));
}

WG_CPU_INLINE constexpr float ue8m0_to_float(Ue8m0 value) {
  if (value == 0) return 0x1p-127F;
  if (value == 255) return std::bit_cast<float>(0x7FC00000U);
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 23);
}

/// ceil(log2(max(amax, floor) / largest)) + 127: the ue8m0 byte of the smallest power of two s with
/// amax / s <= largest. `floor` / `largest` >= 2^-126. An infinite amax gives 255.
/// Origin: vLLM at d40c3e3c00, models/deepseek_v4/common/ops/cache_utils.py and fused_indexer_q.py.
WG_CPU_INLINE constexpr Ue8m0 scale_byte(float amax, float floor, float largest) {
  const float ratio = (amax > floor ? amax : floor) / largest;
  const std::uint32_t u = std::bit_cast<std::uint32_t>(ratio);
  return static_cast<Ue8m0>((u >> 23) + ((u & 0x7FFFFFU) != 0 ? 1U : 0U));
}
/// 1 / 2^(byte-127) for bytes 1..253, so that scaling stays exact.
WG_CPU_INLINE constexpr float inverse_scale(Ue8m0 byte) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(254U - byte) << 23);
}

}  // namespace warmgate::kernels::cpu
