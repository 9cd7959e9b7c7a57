// After attention: inverse rotation and quantisation. The grouped product is in gemm.h.
#pragma once

#include <cstdint>

#include "kernels/cpu/formats.h"

namespace warmgate::kernels::cpu {

/// The first groups·inputs/512 of o's heads, rotated back at each token's position (fp32, no
/// rounding between) and quantised per 128 channels: s = 2^ceil(log2(max(amax,1e-10)/448)).
/// o [tokens,padded_heads,512] bf16, cos_sin [P,64] fp32, positions [tokens] i64 →
/// q [tokens,groups,inputs] e4m3, scales [tokens,groups,inputs/128] fp32. inputs: heads a group
/// times 512.
/// Origin: vLLM at d40c3e3c00, models/deepseek_v4/common/ops/fused_inv_rope_fp8_quant.py.
struct InverseRopeQuant {
  std::int64_t tokens = 0, padded_heads = 0, groups = 0, inputs = 0;
  const Bf16* o = nullptr;
  const float* cos_sin = nullptr;
  const std::int64_t* positions = nullptr;
  E4m3* q = nullptr;
  float* scales = nullptr;
};
void inverse_rope_quant(const InverseRopeQuant& p);

}  // namespace warmgate::kernels::cpu
