// Query and window key: per-head norm, rotation, quantised insert; or padding alone.
#pragma once

#include "harness/engine/ops/check.h"

namespace warmgate::engine::ops {

/// The sparse decode kernel takes 64 or 128 query heads; 0 if `heads` fits neither.
/// Origin: vLLM at d40c3e3c00, models/deepseek_v4/nvidia/flashmla.py padded_heads.
constexpr std::int64_t padded_heads(std::int64_t heads) {
  return heads < 1 ? 0 : heads <= 64 ? 64 : heads <= 128 ? 128 : 0;
}

inline Reason heads_fit(const Tensor& q, const Tensor& padded) {
  if (padded.dim(1) == padded_heads(q.dim(1)) && padded.dim(1) != 0) [[likely]]
    return {};
  return fmt::format("{} query heads in a tensor of {}; the kernels take 64 or 128", q.dim(1),
                     padded.dim(1));
}

/// Per-head RMS norm of q without weight, rotation of the last R of q and kv at each token's
/// position, quantised insert of kv at its slot (-1: skipped), q into padded heads.
/// q [T,h,D] bf16, kv [T,D] bf16, cos_sin [P,R] fp32, cache [blocks,rows,bytes] u8,
/// slots [>=T] i64, positions [>=T] i64, q_out [T,64|128,D] bf16.
struct QNormRopeInsert {
  static constexpr std::string_view kernel = "fused_qnorm_rope_kv_insert";
  Tensor q, kv, cos_sin, cache, slots, positions, q_out;
  double eps = 1e-6;
  std::int64_t rows() const { return q.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(q), v(kv), v(cos_sin), v(cache), v(slots), v(positions), v(q_out), v(cache.strides[0]);
  }
};
inline Reason can_run(const QNormRopeInsert& p) {
  return first(heads_fit(p.q, p.q_out), holds_rows("slot mapping", p.slots, p.q.rows()),
               holds_rows("positions", p.positions, p.q.rows()),
               is_type("cache", p.cache, DType::kU8),
               same("tokens of q and kv", p.q.rows(), p.kv.rows()));
}
inline Cost account(const QNormRopeInsert& p) {
  return {p.q.payload_bytes() + p.kv.payload_bytes() + p.q_out.payload_bytes() +
              p.q.rows() * (p.cache.last() + 16 + p.cos_sin.last() * 4),
          8 * p.q.elements() + 8 * p.kv.elements(), 1};
}
void run(const QNormRopeInsert& p, const Device& device);

/// What is left of it without metadata: q zero-padded to the kernel's heads.
struct PadQ {
  static constexpr std::string_view kernel = "pad_q";
  Tensor q, q_out;
  std::int64_t rows() const { return q.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(q), v(q_out);
  }
};
inline Reason can_run(const PadQ& p) { return heads_fit(p.q, p.q_out); }
inline Cost account(const PadQ& p) { return {p.q.payload_bytes() + p.q_out.payload_bytes(), 0, 1}; }
void run(const PadQ& p, const Device& device);

}  // namespace warmgate::engine::ops
