// Root mean square normalisation: y = x / sqrt(mean(x²) + eps) · weight, fp32 inside, bf16 out.
#pragma once

#include <cstdint>

#include "kernels/cpu/formats.h"

namespace warmgate::kernels::cpu {

/// x [tokens,width], weight [width], y [tokens,width], bf16. Strides in elements, 0: without gaps.
/// y may be x. One rounding, at the output.
struct RmsNorm {
  std::int64_t tokens = 0, width = 0;
  const Bf16* x = nullptr;
  const Bf16* weight = nullptr;
  Bf16* y = nullptr;
  float eps = 1e-6F;
  std::int64_t x_stride = 0, y_stride = 0;
};
void rms_norm(const RmsNorm& p);

/// Both norms after the input projection: qkv [tokens,q_width+kv_width] bf16 → qr [tokens,q_width],
/// kv [tokens,kv_width].
struct FusedQkvNorm {
  std::int64_t tokens = 0, q_width = 0, kv_width = 0;
  const Bf16* qkv = nullptr;
  const Bf16* q_norm = nullptr;
  const Bf16* kv_norm = nullptr;
  Bf16* qr = nullptr;
  Bf16* kv = nullptr;
  float eps = 1e-6F;
};
void fused_qkv_norm(const FusedQkvNorm& p);

}  // namespace warmgate::kernels::cpu
