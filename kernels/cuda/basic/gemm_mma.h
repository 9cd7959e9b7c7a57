// Products of few tokens on the matrix units, with weights widened in registers.
#pragma once

#include "kernels/cpu/gemm.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// What the kernel sees: `groups` matrices of `rows` rows one behind the other. Strides in
/// elements, those of x in bytes.
struct MmaParams {
  const unsigned char* w = nullptr;
  const unsigned char* scales = nullptr;
  std::int64_t row_bytes = 0, first_row = 0, rows = 0, groups = 1;
  const unsigned char* x = nullptr;
  std::int64_t x_stride = 0, x_group = 0;
  const float* x_scales = nullptr;  // [tokens,groups,steps]: x is e4m3
  void* y = nullptr;
  std::int64_t y_stride = 0, y_group = 0;
  std::int64_t tokens = 0;
  int steps = 0;   // of 128 bytes of a row
  int splits = 1;  // warps that share a row's steps
  bool y_fp32 = false;
};

/// How the work is cut. 0: as the shape asks.
struct MmaCut {
  int row_tiles = 0;  // of 16 rows a warp: 1 or 2
  int warps = 0;      // wanted a multiprocessor
};

/// bf16, fp8 or fp4 weights; columns in whole 16 bytes; aligned. p's strides are set.
bool fits_mma(const cpu::Gemm& p);
void multiply_mma(const cpu::Gemm& p, const Launch& launch, MmaCut cut = {});

bool fits_mma(const cpu::GroupedProjection& p);
void multiply_mma(const cpu::GroupedProjection& p, const Launch& launch, MmaCut cut = {});

/// By type, in a file each, since each is many kernels: for 8, 16, 32 or 64 tokens at once.
void launch_mma_bf16(MmaParams p, int row_tiles, int warps, const Launch& launch);
void launch_mma_fp8(MmaParams p, int row_tiles, int warps, const Launch& launch);
void launch_mma_fp4(MmaParams p, int row_tiles, int warps, const Launch& launch);
void launch_mma_grouped(MmaParams p, int row_tiles, int warps, const Launch& launch);

}  // namespace warmgate::kernels::cuda
