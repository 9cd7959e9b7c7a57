// The kernels behind gemm.h. All strides in elements; y bf16 or fp32.
#pragma once

#include "kernels/cpu/gemm.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// Tokens up to which weights are multiplied as they are stored, by kernels that read them once.
constexpr std::int64_t kFewTokens = 8;

/// Rows first .. first+count-1 of w (fp8 or fp4) → bf16 [count,stride], exact; columns from
/// w.columns to stride become zero.
void widen_weights(const cpu::Weights& w, std::int64_t first, std::int64_t count,
                   std::int64_t stride, cpu::Bf16* out, const Launch& launch);

/// x [rows,columns] e4m3 times scales [rows,ceil(columns/128)] fp32 → bf16 [rows,columns].
void widen_inputs(const cpu::E4m3* x, const float* scales, std::int64_t rows, std::int64_t columns,
                  cpu::Bf16* out, const Launch& launch);

/// h = silu(gate)·up of gate_up [tokens,2·inter] bf16, clamped as GatedMlp says → h [tokens,inter].
void activate(std::int64_t tokens, std::int64_t inter, const cpu::Bf16* gate_up, float limit,
              cpu::Bf16* h, const Launch& launch);

/// y[t,o] = x[t,:] · w[first_row + o,:] for o < w.rows, which counts the rows wanted; p's strides
/// are set. Any weights, any tokens. A warp an output row, x for eight tokens:
void multiply_few(const cpu::Gemm& p, std::int64_t first_row, const Launch& launch);
/// Tiles of 64 x 64 in fp32: right, and slow beside matrix units.
void multiply_tiles(const cpu::Gemm& p, std::int64_t first_row, const Launch& launch);

}  // namespace warmgate::kernels::cuda
