// Rows of weights as floats. For the products in gemm.cc.
#pragma once

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/lanes.h"

namespace warmgate::kernels::cpu {

constexpr std::int64_t kScaleBlock = 128;  // fp8: rows and columns that share a scale
constexpr std::int64_t kFp4Run = 32;       // fp4: values that share a scale

WG_CPU_INLINE void fp8_row(const Weights& w, std::int64_t row, float* out) {
  const E4m3* in = static_cast<const E4m3*>(w.data) + row * w.columns;
  const std::int64_t blocks = (w.columns + kScaleBlock - 1) / kScaleBlock;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const float scale = ue8m0_to_float(w.scales[row / kScaleBlock * blocks + b]);
    const std::int64_t begin = b * kScaleBlock;
    const std::int64_t count = w.columns - begin < kScaleBlock ? w.columns - begin : kScaleBlock;
    for (std::int64_t i = 0; i < count; ++i) {
      out[begin + i] = e4m3_to_float(in[begin + i]) * scale;
    }
  }
}

WG_CPU_INLINE void fp4_row(const Weights& w, std::int64_t row, float* out) {
  const std::int64_t runs = w.columns / kFp4Run;
  const Nibbles* in = static_cast<const Nibbles*>(w.data) + row * w.columns / 2;
  for (std::int64_t run = 0; run < runs; ++run) {
    const float scale = ue8m0_to_float(w.scales[row * runs + run]);
    for (std::int64_t i = 0; i < kFp4Run / 2; ++i, out += 2) {
      const std::uint32_t pair = *in++;
      out[0] = kE2m1Values[pair & 15U] * scale;
      out[1] = kE2m1Values[pair >> 4] * scale;
    }
  }
}

/// Row `row` of w as floats, and zeros up to padded(columns).
WG_CPU_INLINE void weight_row(const Weights& w, std::int64_t row, float* out) {
  switch (w.type) {
    case WeightType::kBf16:
      widen(static_cast<const Bf16*>(w.data) + row * w.columns, w.columns, out);
      break;
    case WeightType::kFp32: {
      const float* in = static_cast<const float*>(w.data) + row * w.columns;
      for (std::int64_t i = 0; i < w.columns; ++i) out[i] = in[i];
      break;
    }
    case WeightType::kFp8:
      fp8_row(w, row, out);
      break;
    case WeightType::kFp4:
      fp4_row(w, row, out);
      break;
  }
  for (std::int64_t i = w.columns; i < padded(w.columns); ++i) out[i] = 0;
}

}  // namespace warmgate::kernels::cpu
