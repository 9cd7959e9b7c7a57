// Query and window key: per-head norm, rotation, quantised insert; or padding alone.
#pragma once

#include <cstdint>

#include "kernels/cpu/pages.h"

namespace warmgate::kernels::cpu {

/// q [tokens,heads,512] bf16, kv [tokens,512] bf16, cos_sin [P,64] fp32, positions [tokens] i64,
/// slots [tokens] i64 (negative: not inserted) → q_out [tokens,padded_heads,512] bf16, kv into its
/// page. q /= sqrt(mean(q²)+eps), then rotation, fp32 throughout, one rounding to bf16; padding
/// heads zero. kv: last 64 rotated in fp32 and rounded to bf16. kv itself is not changed.
/// Every token needs a position with a table row, also one that is not inserted.
struct QNormRopeInsert {
  std::int64_t tokens = 0, heads = 0, padded_heads = 0;
  const Bf16* q = nullptr;
  const Bf16* kv = nullptr;
  const float* cos_sin = nullptr;
  const std::int64_t* positions = nullptr;
  const std::int64_t* slots = nullptr;
  Pages pages;
  Bf16* q_out = nullptr;
  float eps = 1e-6F;
};
void qnorm_rope_insert(const QNormRopeInsert& p);

/// q [tokens,heads,512] → q_out [tokens,padded_heads,512], padding heads zero.
struct PadQ {
  std::int64_t tokens = 0, heads = 0, padded_heads = 0;
  const Bf16* q = nullptr;
  Bf16* q_out = nullptr;
};
void pad_q(const PadQ& p);

}  // namespace warmgate::kernels::cpu
