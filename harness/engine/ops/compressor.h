// The window compressor: one fp32 state row a token, one entry a completed window.
#pragma once

#include "harness/engine/ops/check.h"

namespace warmgate::engine::ops {

/// kv_score [T,2·coff·D] fp32 → state cache rows [kv | score + ape[p mod r]] at the token's slot.
/// ape [r,coff·D] fp32, state [blocks,rows,2·coff·D] fp32, slots, positions [>=T] i64.
struct SavePartialStates {
  static constexpr std::string_view kernel = "save_partial_states";
  Tensor kv_score, ape, state, slots, positions;
  std::int64_t rows() const { return kv_score.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(kv_score), v(ape), v(state), v(slots), v(positions), v(state.strides[0]);
  }
};
inline Reason can_run(const SavePartialStates& p) {
  return first(is_type("kv_score", p.kv_score, DType::kFp32),
               same("state row and kv_score", p.state.last(), p.kv_score.last()),
               same("twice the ape row and the state row", 2 * p.ape.last(), p.state.last()),
               holds_rows("slot mapping", p.slots, p.kv_score.rows()));
}
inline Cost account(const SavePartialStates& p) {
  return {2 * p.kv_score.payload_bytes() + p.ape.payload_bytes() + 16 * p.kv_score.rows(),
          p.kv_score.elements() / 2, 1};
}
void run(const SavePartialStates& p, const Device& device);

/// For each token that completes a window: gathers its (1+ov)·r state rows, softmax-pools them per
/// channel, norm, rotation, quantised store at the compressed slot. `entries` windows complete.
/// state [blocks,rows,2·coff·D] fp32, table [reqs,blocks] i32, cache [blocks,rows,bytes] u8,
/// slots [>=T] i64 (-1: no window ends here), positions [>=T] i64, token_to_req [>=T] i32.
struct CompressWindow {
  std::string_view kernel;  // compress_c4, compress_c128, indexer_compress_fp8, ..._mxfp4
  std::int64_t tokens = 0, entries = 0, ratio = 0, overlap = 0, width = 0;  // width: D
  Tensor state, table, norm, cos_sin, cache, slots, positions, token_to_req;
  double eps = 1e-6;
  std::int64_t rows() const { return tokens; }
  std::int64_t window_rows() const { return (1 + overlap) * ratio; }
  template <class V>
  void arguments(V& v) const {
    v(state), v(table), v(norm), v(cos_sin), v(cache), v(slots), v(positions), v(token_to_req);
    v(cache.strides[0]);
  }
};
inline Reason can_run(const CompressWindow& p) {
  return first(same("state row", p.state.last(), 2 * (1 + p.overlap) * p.width),
               holds_rows("compressed slot mapping", p.slots, p.tokens),
               is_type("cache", p.cache, DType::kU8), same("norm", p.norm.rows(), p.width));
}
inline Cost account(const CompressWindow& p) {
  return {p.entries * (p.window_rows() * 2 * p.width * 4 + p.cache.last()) + 8 * p.tokens,
          p.entries * p.window_rows() * p.width * 6, 1};
}
void run(const CompressWindow& p, const Device& device);

}  // namespace warmgate::engine::ops
