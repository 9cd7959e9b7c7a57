// After attention: inverse rotation, quantisation, the grouped projection.
#pragma once

#include "harness/engine/ops/check.h"

namespace warmgate::engine::ops {

/// The first h of o's padded heads, rotated back at each token's position and quantised to e4m3 per
/// 128 channels: o [T,64|128,D] bf16 → q [T,Gl,heads·D/G] fp8, scales [T,Gl,ceil(…/128)] fp32.
struct InverseRopeQuant {
  static constexpr std::string_view kernel = "fused_inv_rope_fp8_quant";
  Tensor o, cos_sin, positions, q, scales;
  std::int64_t rows() const { return o.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(o), v(cos_sin), v(positions), v(q), v(scales);
  }
};
inline Reason can_run(const InverseRopeQuant& p) {
  if (p.q.dim(1) * p.q.dim(2) > p.o.dim(1) * p.o.dim(2)) [[unlikely]] {
    return fmt::format("groups {} need more channels than heads {} have", shape_text(p.q),
                       shape_text(p.o));
  }
  return first(holds_rows("positions", p.positions, p.o.rows()),
               same("scale columns", p.scales.last(), ceil_div(p.q.last(), 128)));
}
inline Cost account(const InverseRopeQuant& p) {
  return {3 * p.q.elements() + p.scales.payload_bytes(), 6 * p.q.elements(), 1};
}
void run(const InverseRopeQuant& p, const Device& device);

/// z[t,g,:] = w[g] · x[t,g,:]: x [T,Gl,in] fp8, w [Gl·rank,in] fp8 seen as Gl matrices, z
/// [T,Gl,rank] bf16.
struct GroupedProjection {
  static constexpr std::string_view kernel = "fp8_einsum_bhr_hdr_bhd";
  Tensor x, scales, w, z;
  std::int64_t rows() const { return x.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(x), v(scales), v(w), v(z), v(x.rows());
  }
};
inline Reason can_run(const GroupedProjection& p) {
  return first(same("inputs a group", p.x.last(), p.w.last()),
               same("groups times rank", p.z.dim(1) * p.z.dim(2), p.w.rows()),
               same("groups", p.x.dim(1), p.z.dim(1)));
}
inline Cost account(const GroupedProjection& p) {
  return {p.x.payload_bytes() + p.w.payload_bytes() + p.z.payload_bytes(),
          2 * p.x.rows() * p.w.elements(), 1};
}
void run(const GroupedProjection& p, const Device& device);

}  // namespace warmgate::engine::ops
