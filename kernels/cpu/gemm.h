// y = x · wᵀ. Every output element is the sum over k of x[t,k]·w[o,k] in fp32, in eight lanes
// (k mod 8) that are added in ascending k and then pairwise: the order depends on nothing but the
// number of inputs, never on how many tokens or outputs are computed together.
#pragma once

#include <cstdint>

#include "kernels/cpu/formats.h"

namespace warmgate::kernels::cpu {

enum class WeightType : std::uint8_t { kBf16, kFp32, kFp8, kFp4 };
enum class OutputType : std::uint8_t { kBf16, kFp32 };

/// [rows,columns], row-major without gaps. fp8: values times one ue8m0 scale a 128x128 block,
/// scales [ceil(rows/128),ceil(columns/128)]. fp4 (e2m1): one scale a run of 32
/// values, [rows,columns/32]; columns a multiple of 32.
struct Weights {
  WeightType type = WeightType::kBf16;
  const void* data = nullptr;
  const Ue8m0* scales = nullptr;  // fp8, fp4
  std::int64_t rows = 0, columns = 0;
};

/// x [tokens,columns] bf16 → y [tokens,rows] bf16 or fp32, one rounding at the output. Strides in
/// elements, 0: without gaps. x and y must not overlap.
struct Gemm {
  std::int64_t tokens = 0;
  const Bf16* x = nullptr;
  Weights w;
  OutputType y_type = OutputType::kBf16;
  void* y = nullptr;
  std::int64_t x_stride = 0, y_stride = 0;
};
void gemm(const Gemm& p);

/// z[t,g,:] = w[g] · x[t,g,:], where x is quantised and w is `groups` matrices [rank,inputs] one
/// behind the other (one Weights of groups·rank rows, fp8). x [tokens,groups,inputs] e4m3 times
/// x_scales [tokens,groups,ceil(inputs/128)] fp32; z [tokens,groups,rank] bf16.
/// Origin: vLLM at d40c3e3c00, models/deepseek_v4/nvidia/ops/o_proj.py (einsum bhr,hdr->bhd).
struct GroupedProjection {
  std::int64_t tokens = 0, groups = 0, rank = 0, inputs = 0;
  const E4m3* x = nullptr;
  const float* x_scales = nullptr;
  Weights w;
  Bf16* z = nullptr;
};
void grouped_projection(const GroupedProjection& p);

/// h = silu(gate)·up, y = h · w2ᵀ with [gate | up] = x · w13ᵀ: x [tokens,H] bf16, w13 [2I,H] (gate
/// rows first), w2 [H',I], y [tokens,H'] bf16. gate, up, h and y are each rounded to bf16.
/// limit > 0: gate <= limit and |up| <= limit first (swiglu_limit); 0: none.
struct GatedMlp {
  std::int64_t tokens = 0;
  const Bf16* x = nullptr;
  Weights w13, w2;
  Bf16* y = nullptr;
  float limit = 0;
};
void gated_mlp(const GatedMlp& p);

}  // namespace warmgate::kernels::cpu
