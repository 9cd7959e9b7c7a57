// Tiles of 64 tokens by 64 outputs, fp32 multiply-adds: for fp32 weights, which matrix units would
// round, and where cuBLASLt is missing or has no kernel.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/gemm_kernels.h"
#include "kernels/cuda/basic/gemm_weights.cuh"

namespace warmgate::kernels::cuda {
namespace {

using cpu::WeightType;
constexpr int kThreads = 256, kTile = 64, kDepth = 16, kEach = 4;

template <WeightType type>
__global__ void __launch_bounds__(kThreads) tile_kernel(cpu::Gemm p, int64_t first_of_w) {
  __shared__ float xs[kDepth][kTile + 4], ws[kDepth][kTile + 4];
  const int64_t first_token = blockIdx.y * static_cast<int64_t>(kTile);
  const int64_t first_row = blockIdx.x * static_cast<int64_t>(kTile);
  const int own_token = threadIdx.x / 16 * kEach, own_row = threadIdx.x % 16 * kEach;
  float sums[kEach][kEach] = {};
  for (int64_t k0 = 0; k0 < p.w.columns; k0 += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
      const int k = i % kDepth, r = i / kDepth;
      const bool inside = k0 + k < p.w.columns;
      const int64_t t = first_token + r, row = first_row + r;
      xs[k][r] = inside && t < p.tokens ? bf16_to_float(p.x[t * p.x_stride + k0 + k]) : 0;
      ws[k][r] = inside && row < p.w.rows ? weight_at<type>(p.w, first_of_w + row, k0 + k) : 0;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
#pragma unroll
      for (int a = 0; a < kEach; ++a) {
#pragma unroll
        for (int b = 0; b < kEach; ++b) sums[a][b] += xs[k][own_token + a] * ws[k][own_row + b];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int a = 0; a < kEach; ++a) {
#pragma unroll
    for (int b = 0; b < kEach; ++b) {
      const int64_t t = first_token + own_token + a, row = first_row + own_row + b;
      if (t >= p.tokens || row >= p.w.rows) continue;
      const int64_t at = t * p.y_stride + row;
      if (p.y_type == cpu::OutputType::kFp32) {
        static_cast<float*>(p.y)[at] = sums[a][b];
      } else {
        static_cast<uint16_t*>(p.y)[at] = to_bf16(sums[a][b]);
      }
    }
  }
}

template <WeightType type>
void launch_tiles(const cpu::Gemm& p, std::int64_t first_row, const Launch& launch) {
  const dim3 grid(static_cast<unsigned>(blocks_for(p.w.rows, kTile)),
                  static_cast<unsigned>(blocks_for(p.tokens, kTile)));
  tile_kernel<type><<<grid, kThreads, 0, launch.stream>>>(p, first_row);
  check_launch("gemm, tiles");
}

}  // namespace

void multiply_tiles(const cpu::Gemm& p, std::int64_t first_row, const Launch& launch) {
  switch (p.w.type) {
    case WeightType::kBf16:
      return launch_tiles<WeightType::kBf16>(p, first_row, launch);
    case WeightType::kFp32:
      return launch_tiles<WeightType::kFp32>(p, first_row, launch);
    case WeightType::kFp8:
      return launch_tiles<WeightType::kFp8>(p, first_row, launch);
    case WeightType::kFp4:
      return launch_tiles<WeightType::kFp4>(p, first_row, launch);
  }
}

}  // namespace warmgate::kernels::cuda
