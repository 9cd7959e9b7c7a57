// The one order in which products are summed: lane k mod 8 in ascending k, then the eight lanes
// pairwise. Written with vectors of eight so that every instruction set computes the same.
#pragma once

#include <cstdint>

#include "kernels/cpu/formats.h"

namespace warmgate::kernels::cpu {

constexpr std::int64_t kLanes = 8;
typedef float Lanes __attribute__((vector_size(32)));
typedef float LanesAt __attribute__((vector_size(32), aligned(4), may_alias));  // anywhere

/// Buffers of rows are padded with zeros to this many floats.
constexpr std::int64_t padded(std::int64_t width) { return (width + kLanes - 1) / kLanes * kLanes; }

WG_CPU_INLINE const LanesAt& lanes_at(const float* p) {
  return *reinterpret_cast<const LanesAt*>(p);
}
WG_CPU_INLINE LanesAt& lanes_at(float* p) { return *reinterpret_cast<LanesAt*>(p); }

WG_CPU_INLINE float sum_of_lanes(const Lanes& v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/// out[m·out_stride + n] = a[m·width] · b[n·width], m < M, n < N; width a multiple of 8. The bits
/// of each do not depend on M and N.
template <int M, int N>
WG_CPU_INLINE void dot_tile(const float* a, const float* b, std::int64_t width, float* out,
                            std::int64_t out_stride) {
  Lanes sums[M][N] = {};
  for (std::int64_t k = 0; k < width; k += kLanes) {
    Lanes bk[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) bk[n] = lanes_at(b + n * width + k);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const Lanes ak = lanes_at(a + m * width + k);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) sums[m][n] += ak * bk[n];
    }
  }
  for (int m = 0; m < M; ++m) {
    for (int n = 0; n < N; ++n) out[m * out_stride + n] = sum_of_lanes(sums[m][n]);
  }
}

/// The same for any number of rows: a [ms,width], b [ns,width], in tiles of 3 x 4.
WG_CPU_INLINE void dot_rows(const float* a, std::int64_t ms, const float* b, std::int64_t ns,
                            std::int64_t width, float* out, std::int64_t out_stride) {
  std::int64_t n = 0;
  for (; n + 4 <= ns; n += 4) {
    const float* bn = b + n * width;
    std::int64_t m = 0;
    for (; m + 3 <= ms; m += 3) {
      dot_tile<3, 4>(a + m * width, bn, width, out + m * out_stride + n, out_stride);
    }
    for (; m < ms; ++m) {
      dot_tile<1, 4>(a + m * width, bn, width, out + m * out_stride + n, out_stride);
    }
  }
  for (; n < ns; ++n) {
    const float* bn = b + n * width;
    std::int64_t m = 0;
    for (; m + 4 <= ms; m += 4) {
      dot_tile<4, 1>(a + m * width, bn, width, out + m * out_stride + n, out_stride);
    }
    for (; m < ms; ++m) {
      dot_tile<1, 1>(a + m * width, bn, width, out + m * out_stride + n, out_stride);
    }
  }
}

/// `count` bf16 values as floats, and zeros up to padded(count).
WG_CPU_INLINE void widen(const Bf16* in, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = to_float(in[i]);
  for (std::int64_t i = count; i < padded(count); ++i) out[i] = 0;
}

/// x²'s mean over `width` values (buffer padded with zeros) → 1 / sqrt(mean + eps).
WG_CPU_INLINE float inverse_rms(const float* x, std::int64_t width, float eps) {
  float squares = 0;
  dot_tile<1, 1>(x, x, padded(width), &squares, 1);
  return 1.0F / __builtin_sqrtf(squares / static_cast<float>(width) + eps);
}

/// e^x within about 1 ulp: range reduction by ln 2 in two parts, polynomial of degree 6. Own code,
/// so that it vectorises and gives the same bits on every machine. NaN stays NaN.
WG_CPU_INLINE float exponential(float x) {
  float v = x < -104.0F ? -104.0F : x;
  v = v > 89.0F ? 89.0F : v;
  const float shifted = v * 1.44269504F + 0x1.8p23F;  // rounds to an integer in the low bits
  const std::uint32_t n = std::bit_cast<std::uint32_t>(shifted) - 0x4B400000U;
  const float whole = shifted - 0x1.8p23F;
  const float r = (v - whole * 0x1.62E4p-1F) - whole * 0x1.7F7D1Cp-20F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = (p * r) * r + r + 1.0F;
  // 2^n in two factors: each is a normal number where the product need not be.
  const std::uint32_t half = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) >> 1);
  return p * std::bit_cast<float>((half + 127U) << 23) *
         std::bit_cast<float>((n - half + 127U) << 23);
}

}  // namespace warmgate::kernels::cpu
