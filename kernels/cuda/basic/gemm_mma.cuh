// y = x · wᵀ for few tokens with mma.m16n8k16: 16 rows of w are its rows, 8 tokens its columns.
// Each lane reads 16 bytes of a row at once, four lanes 64 bytes side by side: which 16 inputs an
// mma sums is free as long as w and x agree, so what a lane has read are its own operands, without
// shared memory. Warps that share rows take every splits-th step and add in a fixed order.
#pragma once

#include <algorithm>

#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/gemm_mma.h"
#include "kernels/cuda/basic/gemm_mma_operands.cuh"

namespace warmgate::kernels::cuda {

/// Warps of a block at most: what they sum passes through shared memory.
template <int kTokenTiles>
constexpr int kMmaWarps = kTokenTiles <= 2   ? 16
                          : kTokenTiles == 4 ? 8
                                             : 4;

template <cpu::WeightType type, int kRowTiles>
struct MmaPiece {
  uint4 w[kRowTiles][2][2];         // [tile][row or row + 8][half of the step]
  uint32_t scale[kRowTiles][2][2];  // bits; of fp8 the first half's is the step's
};

template <cpu::WeightType type, bool kQuantised, int kRowTiles, int kTokenTiles>
__global__ void __launch_bounds__(32 * kMmaWarps<kTokenTiles>)
    mma_kernel(const __grid_constant__ MmaParams p) {
  using cpu::WeightType;
  constexpr bool kFp8 = type == WeightType::kFp8, kFp4 = type == WeightType::kFp4;
  constexpr int kRows = 16 * kRowTiles, kPitch = kRows + 4, kTokens = 8 * kTokenTiles;
  constexpr int kXBytes = kQuantised ? 1 : type == WeightType::kBf16 ? 1 : kFp8 ? 2 : 4;
  constexpr int kDepth = kRowTiles == 1 ? 2 : 1;  // steps of w on their way
  // With few tokens scales of sums are the cheaper ones; with many, sums a step take registers.
  constexpr bool kScaleLast = kFp8 && (kQuantised || kTokenTiles <= 2);
  __shared__ float sums[kMmaWarps<kTokenTiles>][kTokens][kPitch];

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, q = lane % 4;
  const int split = warp % p.splits, tiles_here = blockDim.x / 32 / p.splits;
  const int64_t groups = p.groups, tiles = (p.rows + kRows - 1) / kRows;
  const int64_t first_tile = blockIdx.x * static_cast<int64_t>(tiles_here);
  const int64_t first_token = blockIdx.y * static_cast<int64_t>(kTokens);
  const int64_t tile = min(first_tile + warp / p.splits, tiles * groups - 1);
  const int64_t group = tile / tiles, row0 = (tile - group * tiles) * kRows;
  const int64_t w_row0 = p.first_row + group * p.rows + row0;
  const int rows_left = static_cast<int>(min(p.rows - row0, static_cast<int64_t>(kRows)));
  const int tokens_left =
      static_cast<int>(min(p.tokens - first_token, static_cast<int64_t>(kTokens)));

  // Rows and tokens behind the last are the last again; nobody writes their sums.
  const uint8_t* w = p.w + w_row0 * p.row_bytes + q * 16;
  const uint32_t row_bytes = static_cast<uint32_t>(p.row_bytes);
  uint32_t own_row[kRowTiles][2], x_offset[kTokenTiles];
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) own_row[m][h] = min(16 * m + 8 * h + g, rows_left - 1);
  }
  const uint8_t* x = p.x + first_token * p.x_stride + group * p.x_group + q * 16 * kXBytes;
#pragma unroll
  for (int n = 0; n < kTokenTiles; ++n)
    x_offset[n] = min(8 * n + g, tokens_left - 1) * static_cast<uint32_t>(p.x_stride);

  const float* x_scales = p.x_scales + (first_token * groups + group) * p.steps;
  uint32_t scale_offset[kTokenTiles][2];  // of the tokens whose sums the lane holds
#pragma unroll
  for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      scale_offset[n][i] =
          min(8 * n + 2 * q + i, tokens_left - 1) * static_cast<uint32_t>(p.groups * p.steps);
  }

  const auto load = [&](MmaPiece<type, kRowTiles>& piece, int step) {
    if (step >= p.steps) return;
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const uint8_t* row = w + own_row[m][h] * row_bytes;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const uint32_t at = step * 128u + j * 64u;
          const bool inside = at + q * 16u < row_bytes;
          piece.w[m][h][j] = inside ? load_once(row + at) : uint4{};
          if constexpr (kFp4) {
            const uint32_t run = at / 16 + q;
            piece.scale[m][h][j] =
                inside ? __ldg(p.scales + (w_row0 + own_row[m][h]) * (row_bytes / 16) + run) : 127;
          }
        }
        if constexpr (kFp8)
          piece.scale[m][h][0] = __ldg(p.scales + (w_row0 + own_row[m][h]) / 128 * p.steps + step);
      }
    }
  };

  float total[kRowTiles][kTokenTiles][4] = {};
  uint32_t odd_rows[kRowTiles][2] = {}, odd_tokens[kTokenTiles] = {};
  const auto multiply = [&](const MmaPiece<type, kRowTiles>& piece, int step) {
    // A step is a block of fp8's scales, which can come after the sum.
    float block[kRowTiles][kTokenTiles][4] = {};
    float of_x[kTokenTiles][2];  // asked for before anything waits
    if constexpr (kQuantised) {
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) of_x[n][i] = __ldg(x_scales + scale_offset[n][i] + step);
      }
    }
    auto& into = kScaleLast ? block : total;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const uint32_t at = step * 128u + j * 64u;
      const bool inside = at + q * 16u < row_bytes;
#pragma unroll
      for (int part = 0; part < (kFp4 ? 2 : 1); ++part) {
        constexpr int kSteps = type == WeightType::kBf16 ? 2 : 4;
        Pairs<kSteps> a[kRowTiles][2];
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
          for (int h = 0; h < 2; ++h)
            a[m][h] = operands<type, kSteps, !kScaleLast>(
                piece.w[m][h][j], part, piece.scale[m][h][kFp8 ? 0 : j], odd_rows[m][h]);
        }
#pragma unroll
        for (int n = 0; n < kTokenTiles; ++n) {
          const uint8_t* from = x + x_offset[n] + at * kXBytes + part * 32;
          Pairs<kSteps> b;
          if constexpr (kQuantised) {
            const uint4 v = inside ? __ldg(reinterpret_cast<const uint4*>(from)) : uint4{};
            b = operands<WeightType::kFp8, kSteps>(v, 0, 0, odd_tokens[n]);
          } else {
            b = inputs<type, kSteps>(reinterpret_cast<const uint4*>(from), inside);
          }
#pragma unroll
          for (int k = 0; k < kSteps; ++k) {
#pragma unroll
            for (int m = 0; m < kRowTiles; ++m)
              mma(into[m][n], a[m][0].x[2 * k], a[m][1].x[2 * k], a[m][0].x[2 * k + 1],
                  a[m][1].x[2 * k + 1], b.x[2 * k], b.x[2 * k + 1]);
          }
        }
      }
    }
    if constexpr (kScaleLast) {
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n) {
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float scale = ue8m0_to_float(static_cast<uint8_t>(piece.scale[m][i / 2][0]));
            total[m][n][i] += block[m][n][i] * (kQuantised ? scale * of_x[n][i % 2] : scale);
          }
        }
      }
    }
  };

  MmaPiece<type, kRowTiles> ring[kDepth];
#pragma unroll
  for (int d = 0; d < kDepth; ++d) load(ring[d], split + d * p.splits);
  for (int step = split; step < p.steps; step += kDepth * p.splits) {
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const int own = step + d * p.splits;
      if (own >= p.steps) break;
      multiply(ring[d], own);
      load(ring[d], own + kDepth * p.splits);
    }
  }

  // NaN of e4m3 became numbers: a row or token with one is NaN as a whole.
  const float nan = __int_as_float(0x7FFFFFFF);
#pragma unroll
  for (int n = 0; n < kTokenTiles; ++n) {
    const bool odd_token = kQuantised && any_of_four(odd_tokens[n] & 0x80808080u);
    const unsigned odd = kQuantised ? __ballot_sync(kWholeWarp, odd_token) : 0;
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int token = 2 * q + i % 2;
        float sum = total[m][n][i];
        if (kFp8 && any_of_four(odd_rows[m][i / 2] & 0x80808080u)) sum = nan;
        if (kQuantised && (odd >> 4 * token & 1) != 0) sum = nan;
        sums[warp][8 * n + token][16 * m + 8 * (i / 2) + g] = sum;
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < tiles_here * kTokens * kRows; i += blockDim.x) {
    const int row = i % kRows, token = i / kRows % kTokens, local = i / (kRows * kTokens);
    const int64_t of = first_tile + local, its_group = of / tiles;
    const int64_t its_row = (of - its_group * tiles) * kRows + row;
    if (its_group >= p.groups || its_row >= p.rows || token >= tokens_left) continue;
    float sum = 0;
    for (int s = 0; s < p.splits; ++s) sum += sums[local * p.splits + s][token][row];
    const int64_t to = (first_token + token) * p.y_stride + its_group * p.y_group + its_row;
    if (p.y_fp32) {
      static_cast<float*>(p.y)[to] = sum;
    } else {
      static_cast<uint16_t*>(p.y)[to] = to_bf16(sum);
    }
  }
}

template <cpu::WeightType type, bool kQuantised, int kRowTiles, int kTokenTiles>
void launch_mma(MmaParams p, int warps, const Launch& launch) {
  constexpr int kMost = kMmaWarps<kTokenTiles>;
  const std::int64_t tiles = blocks_for(p.rows, 16 * kRowTiles) * p.groups;
  const std::int64_t columns = blocks_for(p.tokens, 8 * kTokenTiles);
  p.splits = 1;
  while (p.splits < kMost && 2 * p.splits <= p.steps &&
         tiles * columns * p.splits < static_cast<std::int64_t>(processors(launch)) * warps)
    p.splits *= 2;
  const int block = std::max(p.splits, std::min(kMost, 8));
  const dim3 grid(static_cast<unsigned>(blocks_for(tiles, block / p.splits)),
                  static_cast<unsigned>(columns));
  mma_kernel<type, kQuantised, kRowTiles, kTokenTiles><<<grid, 32 * block, 0, launch.stream>>>(p);
  check_launch("gemm, few tokens on matrix units");
}

template <cpu::WeightType type, bool kQuantised, int kRowTiles>
void launch_mma(const MmaParams& p, int warps, const Launch& launch) {
  if (p.tokens <= 8) return launch_mma<type, kQuantised, kRowTiles, 1>(p, warps, launch);
  if (p.tokens <= 16) return launch_mma<type, kQuantised, kRowTiles, 2>(p, warps, launch);
  if (p.tokens <= 32) return launch_mma<type, kQuantised, kRowTiles, 4>(p, warps, launch);
  launch_mma<type, kQuantised, 1, 8>(p, warps, launch);
}

template <cpu::WeightType type, bool kQuantised>
void launch_mma(const MmaParams& p, int row_tiles, int warps, const Launch& launch) {
  if (row_tiles == 1) return launch_mma<type, kQuantised, 1>(p, warps, launch);
  launch_mma<type, kQuantised, 2>(p, warps, launch);
}

}  // namespace warmgate::kernels::cuda
