// The indexer of c4a layers: quantised queries, scores against compressed keys, top-k.
#pragma once

#include "harness/engine/ops/check.h"

namespace warmgate::engine::ops {

/// Rotation and per-head quantisation of iq [T,heads,Di] bf16 and scaling of weights [T,heads]:
/// q fp8 [T,heads,Di], its scale multiplied into w fp32 [T,heads]; or q fp4 with one ue8m0 byte for
/// 32 values in q_scales [T,heads,Di/32].
struct IndexerQuant {
  std::string_view kernel;  // indexer_q_rope_quant_fp8 | _mxfp4
  Tensor iq, weights, q, w, cos_sin, positions, q_scales;
  std::int64_t rows() const { return iq.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(iq), v(weights), v(q), v(w), v(cos_sin), v(positions), v(q_scales);
  }
};
inline Reason can_run(const IndexerQuant& p) {
  return first(same("indexer heads", p.iq.dim(1), p.weights.last()),
               same("quantised width", p.iq.last(), p.q.last()),
               holds_rows("positions", p.positions, p.iq.rows()));
}
inline Cost account(const IndexerQuant& p) {
  return {
      p.iq.payload_bytes() + p.q.payload_bytes() + p.weights.payload_bytes() + p.w.payload_bytes(),
      8 * p.iq.elements(), 1};
}
void run(const IndexerQuant& p, const Device& device);

/// Compressed keys of a chunk's requests, contiguous: values [n,value bytes] u8, scales [n,4] u8.
/// The requests are `requests` from `first_request` on in table and seq_lens (tokens).
struct GatherIndexerKeys {
  static constexpr std::string_view kernel = "cp_gather_indexer_k_quant_cache";
  std::int64_t keys = 0;
  Tensor cache, table, values, scales;
  Tensor seq_lens = {};
  std::int64_t first_request = 0, requests = 0;
  std::int64_t rows() const { return keys; }
  template <class V>
  void arguments(V& v) const {
    v(cache), v(table), v(values), v(scales), v(cache.strides[0]);
  }
};
inline Reason can_run(const GatherIndexerKeys& p) {
  return first(holds_rows("gather buffer", p.values, p.keys),
               same("value and scale bytes of a cache row", p.values.last() + p.scales.last(),
                    p.cache.last()));
}
inline Cost account(const GatherIndexerKeys& p) { return {2 * p.keys * p.cache.last(), 0, 1}; }
void run(const GatherIndexerKeys& p, const Device& device);

/// score[t,j] = Σ_head ReLU(q·k)·w for the keys ks..ke of each query; logits [t,n] fp32.
struct MqaLogitsPrefill {
  static constexpr std::string_view kernel = "fp8_fp4_mqa_logits";
  Tensor q, w, values, scales, key_start, key_end, logits;
  Tensor q_scales = {};  // fp4 only
  std::int64_t rows() const { return q.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(q), v(w), v(values), v(scales), v(key_start), v(key_end), v(logits);
  }
};
inline Reason can_run(const MqaLogitsPrefill& p) {
  return first(holds_rows("key ranges", p.key_start, p.q.rows()),
               same("logit columns and keys", p.logits.last(), p.values.rows()),
               same("logit rows and queries", p.logits.rows(), p.q.rows()));
}
inline Cost account(const MqaLogitsPrefill& p) {
  return {p.q.payload_bytes() + p.values.payload_bytes() + p.logits.payload_bytes(),
          2 * p.logits.elements() * p.q.dim(1) * p.q.dim(2), 1};
}
void run(const MqaLogitsPrefill& p, const Device& device);

/// The same straight from the paged cache, `per_request` queries a row of table and context_lens.
/// q [t,heads,Di], cache [blocks,rows,bytes] u8, table i32, context_lens i32, logits [t,width]
/// fp32.
struct MqaLogitsPaged {
  static constexpr std::string_view kernel = "fp8_fp4_paged_mqa_logits";
  Tensor q, w, cache, table, context_lens, schedule, logits;
  Tensor q_scales = {};  // fp4 only
  std::int64_t per_request = 1;
  std::int64_t rows() const { return q.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(q), v(w), v(cache), v(table), v(context_lens), v(schedule), v(logits), v(cache.strides[0]);
  }
};
inline Reason can_run(const MqaLogitsPaged& p) {
  return first(same("logit rows and queries", p.logits.rows(), p.q.rows()),
               is_type("context lengths", p.context_lens, DType::kI32),
               is_type("cache", p.cache, DType::kU8));
}
inline Cost account(const MqaLogitsPaged& p) {
  return {p.q.payload_bytes() + p.logits.last() * p.cache.last() + p.logits.payload_bytes(),
          2 * p.logits.elements() * p.q.dim(1) * p.q.dim(2), 1};
}
void run(const MqaLogitsPaged& p, const Device& device);

/// Indices of the K largest logits of each row, ascending, rest -1; ties at the K-th go to the
/// lower index. Row t scores columns starts[t] (0 if absent) up to its length; indices count from
/// starts. lens: a row's end, packed. `scratch`: 1 MiB radix workspace where the kernel takes one.
struct TopkPerRow {
  std::string_view kernel;
  Tensor logits, lens, indices, scratch;
  Tensor starts = {};
  std::int64_t rows() const { return logits.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(logits), v(lens), v(indices), v(indices.last());
    if (scratch.present()) v(scratch);
  }
};
inline Reason can_run(const TopkPerRow& p) {
  return first(holds_rows("top-k index buffer", p.indices, p.logits.rows()),
               is_type("top-k index buffer", p.indices, DType::kI32),
               is_type("logits", p.logits, DType::kFp32));
}
inline Cost account(const TopkPerRow& p) {
  return {p.logits.payload_bytes() + p.logits.rows() * p.indices.last() * 4, p.logits.elements(),
          1};
}
void run(const TopkPerRow& p, const Device& device);

/// Rows of the index buffer become -1 before they are scored: a request without entries is not.
/// Origin: vLLM at d40c3e3c00, model_executor/layers/sparse_attn_indexer.py.
struct ClearTopk {
  static constexpr std::string_view kernel = "clear_topk_indices";
  std::int64_t tokens = 0;
  Tensor indices;
  std::int64_t rows() const { return tokens; }
  template <class V>
  void arguments(V& v) const {
    v(indices);
  }
};
inline Reason can_run(const ClearTopk& p) {
  return holds_rows("top-k index buffer", p.indices, p.tokens);
}
inline Cost account(const ClearTopk& p) { return {p.tokens * 4 * p.indices.last(), 0, 1}; }
void run(const ClearTopk& p, const Device& device);

/// Short contexts: row t becomes 0..(p+1)/r-1, then -1; nothing is scored.
struct FillShortContext {
  static constexpr std::string_view kernel = "fill_short_context_topk_indices";
  std::int64_t tokens = 0;
  Tensor positions, indices;
  std::int64_t rows() const { return tokens; }
  template <class V>
  void arguments(V& v) const {
    v(positions), v(indices);
  }
};
inline Reason can_run(const FillShortContext& p) {
  return first(holds_rows("top-k index buffer", p.indices, p.tokens),
               holds_rows("positions", p.positions, p.tokens));
}
inline Cost account(const FillShortContext& p) {
  return {p.tokens * (8 + 4 * p.indices.last()), 0, 1};
}
void run(const FillShortContext& p, const Device& device);

/// Which decode top-k kernel serves `rows` rows of width `stride` on `arch`.
/// Origin: vLLM at d40c3e3c00, model_executor/layers/sparse_attn_indexer.py. That the persistent
/// kernel takes the same three K is inferred.
std::string_view decode_topk_kernel(std::string_view arch, std::int64_t topk, std::int64_t rows,
                                    std::int64_t stride);
/// Multiprocessors that the paged scoring schedule is made for: A100 108, H100 132, B200 148,
/// RTX PRO 6000 188; 132 for an architecture that is not known.
std::int64_t sm_count(std::string_view arch);
/// The SM100 family scores any number of queries a request; others take 1 or 2, so that longer ones
/// become separate rows ("flattening").
bool flattens_queries(std::string_view arch, std::int64_t next_n);

}  // namespace warmgate::engine::ops
