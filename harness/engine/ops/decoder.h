// The rest of a decoder layer and of the model around it. Where the maths is a stand-in, the name
// says so: hyper-connections keep all residual copies equal, experts are one gated MLP. Weights,
// activations and bytes count as those of the real thing.
#pragma once

#include <span>

#include "harness/engine/ops/gemm.h"

namespace warmgate::engine::ops {

/// Rows of embedding [vocab/tp,H] bf16 for ids [>=T] → hidden [T,H]. The table holds ids from
/// `first_id` on; ids of other ranks' tables give zeros, so that the sum over ranks is the row.
struct Embed {
  static constexpr std::string_view kernel = "embed_tokens";
  Tensor ids, table, out;
  std::int64_t first_id = 0;
  std::int64_t rows() const { return out.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(ids), v(table), v(out);
  }
};
inline Reason can_run(const Embed& p) {
  return first(holds_rows("input ids", p.ids, p.out.rows()),
               same("hidden size", p.table.last(), p.out.last()));
}
inline Cost account(const Embed& p) { return {2 * p.out.payload_bytes() + 8 * p.out.rows(), 0, 1}; }
void run(const Embed& p, const Device& device);

/// The residual begins as equal copies of the embedding: x [T,H] → residual [T,hc,H].
struct SpreadCopies {
  static constexpr std::string_view kernel = "hc_expand";
  Tensor x, residual;
  std::int64_t rows() const { return x.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(x), v(residual);
  }
};
inline Reason can_run(const SpreadCopies& p) {
  return first(same("hidden size", p.x.last(), p.residual.last()),
               holds_rows("residual", p.residual, p.x.rows()));
}
inline Cost account(const SpreadCopies& p) {
  return {p.x.payload_bytes() + p.residual.payload_bytes(), 0, 1};
}
void run(const SpreadCopies& p, const Device& device);

/// Hyper-connections, in: residual copies [T,hc,H] bf16 → layer input x [T,H]; mixing weights
/// fn [(2+hc)·hc, hc·H] fp32 (the head's own: [hc, hc·H]). Stand-in: x is copy 0.
struct HyperConnectionPre {
  static constexpr std::string_view kernel = "stand_in.hc_pre";
  Tensor residual, fn, x;
  std::int64_t rows() const { return residual.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(residual), v(fn), v(x);
  }
};
inline Reason can_run(const HyperConnectionPre& p) {
  return first(same("mixing inputs", p.residual.dim(1) * p.residual.dim(2), p.fn.last()),
               same("hidden size", p.residual.last(), p.x.last()));
}
inline Cost account(const HyperConnectionPre& p) {
  return {p.residual.payload_bytes() + p.fn.payload_bytes() + p.x.payload_bytes(),
          2 * p.residual.rows() * p.fn.elements(), 1};
}
void run(const HyperConnectionPre& p, const Device& device);

/// Out: y [T,H] is mixed back into residual [T,hc,H]. Stand-in: bf16(copy 0 + y) becomes every
/// copy.
struct HyperConnectionPost {
  static constexpr std::string_view kernel = "stand_in.hc_post";
  Tensor y, residual;
  std::int64_t rows() const { return y.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(y), v(residual);
  }
};
inline Reason can_run(const HyperConnectionPost& p) {
  return first(same("hidden size", p.y.last(), p.residual.last()),
               holds_rows("residual", p.residual, p.y.rows()));
}
inline Cost account(const HyperConnectionPost& p) {
  return {2 * p.residual.payload_bytes() + p.y.payload_bytes(), 4 * p.residual.elements(), 1};
}
void run(const HyperConnectionPost& p, const Device& device);

/// Mixture of experts with its router: x [T,H] → y [T,H]; w13 [E,2·I/tp,H], w2 [E,H,I/tp].
/// Stand-in: y = w2'·(SiLU(gate)·up) with [gate | up] = w13'·x of the shared expert (shared_w13
/// [2·I'/tp,H], shared_w2 [H,I'/tp]), of expert 0 where there is none; routed experts count only.
struct Moe {
  static constexpr std::string_view kernel = "stand_in.moe";
  std::int64_t experts_per_token = 0, shared = 0;
  Tensor x, gate, w13, w2, y;
  Tensor shared_w13 = {}, shared_w2 = {};
  std::int64_t rows() const { return x.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(x), v(gate), v(w13), v(w2), v(y);
  }
};
inline Reason can_run(const Moe& p) {
  return first(same("hidden size of the router", p.x.last(), p.gate.last()),
               same("experts", p.gate.rows(), p.w13.rows()), holds_rows("output", p.y, p.x.rows()));
}
inline Cost account(const Moe& p) {
  // Experts touched by T tokens: at most all of them.
  const std::int64_t pairs = p.x.rows() * p.experts_per_token;
  const std::int64_t touched = std::min(p.w13.rows(), pairs) + p.shared;
  const std::int64_t per_expert = (p.w13.elements() + p.w2.elements()) / p.w13.rows();
  return {
      touched * (weight_bytes(p.w13) + weight_bytes(p.w2)) / p.w13.rows() + 2 * p.x.payload_bytes(),
      2 * (pairs + p.shared * p.x.rows()) * per_expert, 5};
}
void run(const Moe& p, const Device& device);

/// What a drafter taps: the mean over a layer's residual copies [T,hc,H] → out [T,H].
struct MeanOfCopies {
  static constexpr std::string_view kernel = "aux_hidden";
  Tensor residual, out;
  std::int64_t rows() const { return residual.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(residual), v(out);
  }
};
inline Reason can_run(const MeanOfCopies& p) {
  return first(same("hidden size", p.residual.last(), p.out.last()),
               holds_rows("tap", p.out, p.residual.rows()));
}
inline Cost account(const MeanOfCopies& p) {
  return {p.residual.payload_bytes() + p.out.payload_bytes(), p.residual.elements(), 1};
}
void run(const MeanOfCopies& p, const Device& device);

/// Picks the rows whose logits are wanted: hidden [T,H] → out [n,H]. `picked`: which; the first n
/// if empty.
struct SelectRows {
  static constexpr std::string_view kernel = "select_logit_rows";
  Tensor hidden, out;
  std::span<const std::int64_t> picked = {};
  std::int64_t rows() const { return out.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(hidden), v(out);
  }
};
inline Reason can_run(const SelectRows& p) {
  for (const std::int64_t row : p.picked) {
    if (row < 0 || row >= p.hidden.rows())
      return fmt::format("row {} of {}", row, shape_text(p.hidden));
  }
  if (!p.picked.empty()) {
    return same("picked rows", static_cast<std::int64_t>(p.picked.size()), p.out.rows());
  }
  return holds_rows("hidden state", p.hidden, p.out.rows());
}
inline Cost account(const SelectRows& p) { return {2 * p.out.payload_bytes(), 0, 1}; }
void run(const SelectRows& p, const Device& device);

/// logits [n,V] fp32 → ids [n] of the largest, ties to the lower id. Where nothing is executed, ids
/// are a seeded hash.
struct Sample {
  std::string_view kernel = "greedy_sample";
  Tensor logits, ids;
  std::int64_t rows() const { return logits.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(logits), v(ids);
  }
};
inline Reason can_run(const Sample& p) { return holds_rows("sampled id", p.ids, p.logits.rows()); }
inline Cost account(const Sample& p) { return {p.logits.payload_bytes(), p.logits.elements(), 1}; }
void run(const Sample& p, const Device& device);

/// One step of the draft's low-rank head: logits[b] = base[b·per_request + position] +
/// W2 · W1[previous[b]], W1, W2 [V,rank] bf16, base [n,V] and logits [b,V] fp32. A row beyond
/// base's last is its last: blocks at the end of the context are shorter.
struct MarkovBias {
  static constexpr std::string_view kernel = "markov_bias";
  Tensor previous, w1, w2, logits;
  Tensor base = {};
  std::int64_t per_request = 1, position = 0;
  std::int64_t rows() const { return logits.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(previous), v(w1), v(w2), v(logits);
  }
};
inline Reason can_run(const MarkovBias& p) {
  return first(same("vocabulary", p.w2.rows(), p.logits.last()),
               holds_rows("previous token", p.previous, p.logits.rows()));
}
inline Cost account(const MarkovBias& p) {
  return {p.w2.payload_bytes() + 2 * p.logits.payload_bytes(),
          2 * p.logits.rows() * p.w2.elements(), 1};
}
void run(const MarkovBias& p, const Device& device);

}  // namespace warmgate::engine::ops
