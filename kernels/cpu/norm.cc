#include "kernels/cpu/norm.h"

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/variant.h"

namespace warmgate::kernels::cpu {

namespace {

WG_CPU_INLINE void normalise(const Bf16* in, const Bf16* weight, std::int64_t width, float eps,
                             float* x, Bf16* out) {
  widen(in, width, x);
  const float factor = inverse_rms(x, width, eps);
  for (std::int64_t i = 0; i < width; ++i) out[i] = to_bf16(x[i] * factor * to_float(weight[i]));
}

WG_CPU_INLINE void rms_norm_body(const RmsNorm& p) {
  static thread_local Scratch<float> scratch;
  float* x = scratch.get(padded(p.width));
  const std::int64_t x_stride = p.x_stride > 0 ? p.x_stride : p.width;
  const std::int64_t y_stride = p.y_stride > 0 ? p.y_stride : p.width;
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    normalise(p.x + t * x_stride, p.weight, p.width, p.eps, x, p.y + t * y_stride);
  }
}

}  // namespace

WG_CPU_VARIANTS(rms_norm, RmsNorm)

void fused_qkv_norm(const FusedQkvNorm& p) {
  const std::int64_t stride = p.q_width + p.kv_width;
  rms_norm({p.tokens, p.q_width, p.qkv, p.q_norm, p.qr, p.eps, stride, p.q_width});
  rms_norm({p.tokens, p.kv_width, p.qkv + p.q_width, p.kv_norm, p.kv, p.eps, stride, p.kv_width});
}

}  // namespace warmgate::kernels::cpu
