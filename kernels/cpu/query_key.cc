#include "kernels/cpu/query_key.h"

#include <algorithm>

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/page_rows.h"
#include "kernels/cpu/rope.h"
#include "kernels/cpu/variant.h"

namespace warmgate::kernels::cpu {

namespace {

WG_CPU_INLINE void qnorm_rope_insert_body(const QNormRopeInsert& p) {
  float x[kHeadDim];
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const float* angles = p.cos_sin + p.positions[t] * kRopeDims;
    Bf16* out = p.q_out + t * p.padded_heads * kHeadDim;
    for (std::int64_t h = 0; h < p.heads; ++h, out += kHeadDim) {
      widen(p.q + (t * p.heads + h) * kHeadDim, kHeadDim, x);
      const float factor = inverse_rms(x, kHeadDim, p.eps);
      for (float& v : x) v *= factor;
      rotate(x + kNopeDim, angles);
      for (std::int64_t i = 0; i < kHeadDim; ++i) out[i] = to_bf16(x[i]);
    }
    std::fill_n(out, (p.padded_heads - p.heads) * kHeadDim, Bf16{0});
    if (p.slots[t] < 0) continue;
    widen(p.kv + t * kHeadDim, kHeadDim, x);
    rotate(x + kNopeDim, angles);
    write_ds_mla(x, ds_mla_row(p.pages, p.slots[t]));
  }
}

}  // namespace

WG_CPU_VARIANTS(qnorm_rope_insert, QNormRopeInsert)

void pad_q(const PadQ& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    Bf16* out = p.q_out + t * p.padded_heads * kHeadDim;
    out = std::copy_n(p.q + t * p.heads * kHeadDim, p.heads * kHeadDim, out);
    std::fill_n(out, (p.padded_heads - p.heads) * kHeadDim, Bf16{0});
  }
}

}  // namespace warmgate::kernels::cpu
