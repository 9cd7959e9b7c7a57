// Loops over formats.h that pages, queries and attention outputs share.
#pragma once

#include <cstdint>

#include "kernels/cpu/formats.h"

namespace warmgate::kernels::cpu {

/// NaN does not count.
WG_CPU_INLINE float largest_magnitude(const float* x, std::int64_t count) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    // Magnitudes order like their bits; integers vectorise without assumptions about NaN.
    std::uint32_t a = std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFFU;
    a = a > 0x7F800000U ? 0U : a;
    largest = a > largest ? a : largest;
  }
  return std::bit_cast<float>(largest);
}

/// out[i] = e4m3(x[i] / 2^(byte-127)), saturating.
WG_CPU_INLINE void quantise_e4m3(const float* x, std::int64_t count, Ue8m0 byte, E4m3* out) {
  const float inverse = inverse_scale(byte);
  for (std::int64_t i = 0; i < count; ++i) out[i] = to_e4m3(x[i] * inverse);
}

WG_CPU_INLINE void round_to_bf16(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = round_to_bf16(x[i]);
}

}  // namespace warmgate::kernels::cpu
