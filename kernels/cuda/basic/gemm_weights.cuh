// Elements of stored weights as floats, exactly: one at a time, or eight where they are aligned.
#pragma once

#include "kernels/cpu/gemm.h"
#include "kernels/cuda/rows.cuh"

namespace warmgate::kernels::cuda {

__device__ __forceinline__ float e2m1_to_float(uint32_t code) {
  // 0, 0.5, 1, 1.5, 2, 3, 4, 6 are e2m1 with bias 1: one subnormal.
  const uint32_t magnitude = code & 7u;
  const float positive =
      magnitude < 2 ? 0.5f * magnitude : __uint_as_float((magnitude + 252u) << 22);
  return code & 8u ? -positive : positive;
}

/// Scale of element (row, k) of fp8 weights, or 1.
template <cpu::WeightType type>
__device__ __forceinline__ float weight_scale(const cpu::Weights& w, int64_t row, int64_t k) {
  if constexpr (type == cpu::WeightType::kFp8) {
    return ue8m0_to_float(__ldg(w.scales + row / 128 * ((w.columns + 127) / 128) + k / 128));
  } else if constexpr (type == cpu::WeightType::kFp4) {
    return ue8m0_to_float(__ldg(w.scales + row * (w.columns / 32) + k / 32));
  }
  return 1;
}

template <cpu::WeightType type>
__device__ __forceinline__ float weight_at(const cpu::Weights& w, int64_t row, int64_t k) {
  const int64_t at = row * w.columns + k;
  if constexpr (type == cpu::WeightType::kBf16) {
    return bf16_to_float(static_cast<const uint16_t*>(w.data)[at]);
  } else if constexpr (type == cpu::WeightType::kFp32) {
    return static_cast<const float*>(w.data)[at];
  } else if constexpr (type == cpu::WeightType::kFp8) {
    return e4m3_to_float(static_cast<const uint8_t*>(w.data)[at]) * weight_scale<type>(w, row, k);
  } else {
    const uint32_t pair = static_cast<const uint8_t*>(w.data)[at / 2];
    return e2m1_to_float(at % 2 == 0 ? pair & 15u : pair >> 4) * weight_scale<type>(w, row, k);
  }
}

/// k a multiple of eight, columns too, data aligned to what eight elements take.
template <cpu::WeightType type>
__device__ __forceinline__ Eight weights_at(const cpu::Weights& w, int64_t row, int64_t k) {
  const int64_t at = row * w.columns + k;
  Eight out{};
  if constexpr (type == cpu::WeightType::kBf16) {
    out = widen(__ldg(reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(w.data) + at)));
  } else if constexpr (type == cpu::WeightType::kFp32) {
    const float4* from = reinterpret_cast<const float4*>(static_cast<const float*>(w.data) + at);
    const float4 a = __ldg(from), b = __ldg(from + 1);
    out = {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
  } else {
    const float scale = weight_scale<type>(w, row, k);
    if constexpr (type == cpu::WeightType::kFp8) {
      const uint2 v =
          __ldg(reinterpret_cast<const uint2*>(static_cast<const uint8_t*>(w.data) + at));
      const uint32_t pairs[4] = {v.x, v.x >> 16, v.y, v.y >> 16};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 f = e4m3x2_to_floats(pairs[i]);
        out.x[2 * i] = f.x * scale, out.x[2 * i + 1] = f.y * scale;
      }
    } else {
      const uint32_t v =
          __ldg(reinterpret_cast<const uint32_t*>(static_cast<const uint8_t*>(w.data) + at / 2));
#pragma unroll
      for (int i = 0; i < 8; ++i) out.x[i] = e2m1_to_float(v >> 4 * i & 15u) * scale;
    }
  }
  return out;
}

}  // namespace warmgate::kernels::cuda
