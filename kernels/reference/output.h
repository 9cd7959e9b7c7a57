// Output projection: inverse rotation, e4m3 per 128 channels, grouped matrices, wo_b. vLLM at
// d40c3e3c00, common/ops/fused_inv_rope_fp8_quant.py, nvidia/ops/o_proj.py.
#pragma once

#include "kernels/reference/rope.h"

namespace warmgate::reference {

/// out [heads * head_dim] of one token, unrotated at its own position and put through e4m3 per 128
/// channels (floor 1e-10): what the grouped product reads.
Vector output_operand(View out, std::int64_t head_dim, const Rope& rope, std::int64_t position);

/// operand [groups * in] -> z [groups * lora]: wo_a holds `groups` matrices [lora, in] one under
/// another; group g reads its own `in` values.
Vector grouped_project(View operand, const Matrix& wo_a, std::int64_t groups);

/// y = z · wo_bᵀ with z rounded to bf16 first.
Vector output_project(View z, const Matrix& wo_b);

/// Element by element, in rank order: the all-reduce after wo_b.
Vector sum_over_ranks(const std::vector<Vector>& partial);

}  // namespace warmgate::reference
