// A warp an output row: weights are read once, as they are stored; x comes out of the caches.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/gemm_kernels.h"
#include "kernels/cuda/basic/gemm_weights.cuh"

namespace warmgate::kernels::cuda {
namespace {

using cpu::WeightType;
constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kTokens = static_cast<int>(kFewTokens);

template <WeightType type, bool kEights>
__global__ void __launch_bounds__(kThreads) few_kernel(cpu::Gemm p, int64_t first_row) {
  const int lane = threadIdx.x % 32;
  const int64_t row = blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / 32;
  if (row >= p.w.rows) return;
  const int64_t first = blockIdx.y * static_cast<int64_t>(kTokens);
  const int tokens = static_cast<int>(min(static_cast<int64_t>(kTokens), p.tokens - first));
  const uint16_t* x = p.x + first * p.x_stride;
  float sums[kTokens] = {};
  constexpr int kStep = kEights ? 256 : 32;
#pragma unroll 2
  for (int64_t k = lane * (kStep / 32); k < p.w.columns; k += kStep) {
    if constexpr (kEights) {
      const Eight w = weights_at<type>(p.w, first_row + row, k);
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        if (t >= tokens) break;
        const Eight v = widen(__ldg(reinterpret_cast<const uint4*>(x + t * p.x_stride + k)));
#pragma unroll
        for (int i = 0; i < 8; ++i) sums[t] += w.x[i] * v.x[i];
      }
    } else {
      const float w = weight_at<type>(p.w, first_row + row, k);
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        if (t < tokens) sums[t] += w * bf16_to_float(x[t * p.x_stride + k]);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    const float sum = sum_of<32>(sums[t]);
    if (lane != 0 || t >= tokens) continue;
    const int64_t at = (first + t) * p.y_stride + row;
    if (p.y_type == cpu::OutputType::kFp32) {
      static_cast<float*>(p.y)[at] = sum;
    } else {
      static_cast<uint16_t*>(p.y)[at] = to_bf16(sum);
    }
  }
}

template <WeightType type>
void launch_few(const cpu::Gemm& p, std::int64_t first_row, const Launch& launch) {
  const dim3 grid(static_cast<unsigned>(blocks_for(p.w.rows, kWarps)),
                  static_cast<unsigned>(blocks_for(p.tokens, kTokens)));
  const bool eights = p.w.columns % 8 == 0 && aligned(p.w.data) && aligned(p.x) &&
                      (p.x_stride % 8 == 0 || p.tokens == 1);
  if (eights) {
    few_kernel<type, true><<<grid, kThreads, 0, launch.stream>>>(p, first_row);
  } else {
    few_kernel<type, false><<<grid, kThreads, 0, launch.stream>>>(p, first_row);
  }
  check_launch("gemm, few tokens");
}

}  // namespace

void multiply_few(const cpu::Gemm& p, std::int64_t first_row, const Launch& launch) {
  switch (p.w.type) {
    case WeightType::kBf16:
      return launch_few<WeightType::kBf16>(p, first_row, launch);
    case WeightType::kFp32:
      return launch_few<WeightType::kFp32>(p, first_row, launch);
    case WeightType::kFp8:
      return launch_few<WeightType::kFp8>(p, first_row, launch);
    case WeightType::kFp4:
      return launch_few<WeightType::kFp4>(p, first_row, launch);
  }
}

}  // namespace warmgate::kernels::cuda
