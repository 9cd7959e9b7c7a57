#include "kernels/cpu/output_projection.h"

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/pages.h"
#include "kernels/cpu/quantise.h"
#include "kernels/cpu/rope.h"
#include "kernels/cpu/variant.h"

namespace warmgate::kernels::cpu {

namespace {

constexpr std::int64_t kQuantBlock = 128;

WG_CPU_INLINE void inverse_rope_quant_body(const InverseRopeQuant& p) {
  const std::int64_t heads = p.groups * p.inputs / kHeadDim;
  float x[kHeadDim];
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const float* angles = p.cos_sin + p.positions[t] * kRopeDims;
    for (std::int64_t h = 0; h < heads; ++h) {
      widen(p.o + (t * p.padded_heads + h) * kHeadDim, kHeadDim, x);
      rotate_back(x + kNopeDim, angles);
      const std::int64_t channel = (t * heads + h) * kHeadDim;
      for (std::int64_t c = 0; c < kHeadDim; c += kQuantBlock) {
        const Ue8m0 byte = scale_byte(largest_magnitude(x + c, kQuantBlock), 1e-10F, kE4m3Max);
        quantise_e4m3(x + c, kQuantBlock, byte, p.q + channel + c);
        p.scales[(channel + c) / kQuantBlock] = ue8m0_to_float(byte);
      }
    }
  }
}

}  // namespace

WG_CPU_VARIANTS(inverse_rope_quant, InverseRopeQuant)

}  // namespace warmgate::kernels::cpu
