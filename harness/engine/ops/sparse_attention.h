// Sparse attention with sink over window and compressed entries.
#pragma once

#include "harness/engine/ops/check.h"

namespace warmgate::engine::ops {

/// Cache rows of a chunk's requests, dequantised to bf16 into kv [chunk,M,D] from row `offset` of
/// each. `gathered` rows in all, at most `longest` a request. cache [blocks,rows,bytes] u8.
/// With gather_lens [chunk] the last so many of lens[request] rows, else the first lens/ratio.
/// Table and lens count requests of the step, of which the chunk starts at `first_request`.
struct DequantGather {
  static constexpr std::string_view kernel = "dequantize_and_gather_k";
  std::int64_t gathered = 0, longest = 0, offset = 0;
  Tensor cache, table, lens, kv;
  Tensor gather_lens = {};
  std::int64_t first_request = 0, ratio = 1;
  std::int64_t rows() const { return gathered; }
  template <class V>
  void arguments(V& v) const {
    v(cache), v(table), v(lens), v(kv), v(cache.strides[0]);
  }
};
inline Reason can_run(const DequantGather& p) {
  if (p.offset + p.longest > p.kv.dim(1)) [[unlikely]] {
    return fmt::format("rows {}..{} of a request do not fit workspace rows of {}", p.offset,
                       p.offset + p.longest, p.kv.dim(1));
  }
  return first(is_type("cache", p.cache, DType::kU8), is_type("workspace", p.kv, DType::kBf16));
}
inline Cost account(const DequantGather& p) {
  return {p.gathered * (p.cache.last() + 2 * p.kv.last()), p.gathered * p.kv.last(), 1};
}
void run(const DequantGather& p, const Device& device);

inline Reason width_fits(const char* name, const Tensor& indices, std::int64_t heads) {
  if (indices.last() % heads == 0) [[likely]]
    return {};
  return fmt::format("{} {}: the width must be a multiple of {} for {} heads", name,
                     shape_text(indices), heads, heads);
}

/// q [t,heads,D] bf16, kv [n,1,D] bf16, indices [t,1,width] i32, lens [t] i32, sink [heads] fp32 →
/// out [t,heads,D] bf16. The first lens[t] indices count, those below 0 among them do not. Padding
/// heads of q are zero and what comes out for them is thrown away.
struct SparsePrefill {
  static constexpr std::string_view kernel = "flash_mla_sparse_fwd";
  Tensor q, kv, indices, lens, sink, out;
  /// False: the whole width of a row counts, but for indices below 0 or behind the last key.
  bool honours_lens = true;
  std::int64_t rows() const { return q.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(q), v(kv), v(indices), v(lens), v(sink), v(out), v(indices.last());
  }
};
inline Reason can_run(const SparsePrefill& p) {
  return first(holds_rows("index", p.indices, p.q.rows()), holds_rows("length", p.lens, p.q.rows()),
               holds_rows("output", p.out, p.q.rows()),
               same("heads of q and sink", p.q.dim(1), p.sink.rows()),
               width_fits("indices", p.indices, p.q.dim(1)));
}
inline Cost account(const SparsePrefill& p) {
  const std::int64_t keys = p.q.rows() * p.indices.last();
  return {2 * p.q.payload_bytes() + keys * (4 + 2 * p.kv.last()),
          4 * keys * p.q.dim(1) * p.q.last(), 1};
}
void run(const SparsePrefill& p, const Device& device);

/// Local top-k indices [T,K] → global slots [T,1,K] in pages of `block_rows`, and their count a
/// token (0 if it is not valid).
struct GlobalTopkIndices {
  static constexpr std::string_view kernel = "compute_global_topk_indices_and_lens";
  Tensor local, token_to_req, table, is_valid, global, lens;
  std::int64_t block_rows = 64;
  std::int64_t rows() const { return global.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(local), v(token_to_req), v(table), v(is_valid), v(global), v(lens), v(local.last());
  }
};
inline Reason can_run(const GlobalTopkIndices& p) {
  return first(holds_rows("top-k index buffer", p.local, p.global.rows()),
               holds_rows("token_to_req", p.token_to_req, p.global.rows()),
               same("index widths", p.local.last(), p.global.last()));
}
inline Cost account(const GlobalTopkIndices& p) {
  return {2 * p.global.payload_bytes() + 9 * p.global.rows(), p.global.elements(), 1};
}
void run(const GlobalTopkIndices& p, const Device& device);

/// The tile plan that the first decode call of a kind makes for all layers of that kind.
struct TilePlan {
  static constexpr std::string_view kernel = "flash_mla_sched_meta";
  std::int64_t tokens = 0;
  Tensor lens, extra_lens;
  std::int64_t rows() const { return tokens; }
  template <class V>
  void arguments(V& v) const {
    v(lens), v(extra_lens);
  }
};
inline Reason can_run(const TilePlan& p) { return holds_rows("length", p.lens, p.tokens); }
inline Cost account(const TilePlan& p) { return {8 * p.tokens, p.tokens, 1}; }
void run(const TilePlan& p, const Device& device);

/// Each token its own query: q [T,1,64|128,D], window pages with indices [T,1,w] and lens, and for
/// compressed kinds extra pages with theirs.
struct SparseDecode {
  static constexpr std::string_view kernel = "flash_mla_sparse_decode";
  Tensor q, cache, indices, lens, extra_cache, extra_indices, extra_lens, sink, out;
  /// True: the padded width of a window counts as its length, and padding is the first slot of the
  /// null block, a key of zeros.
  bool counts_padding = false;
  std::int64_t rows() const { return q.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(q), v(cache), v(indices), v(lens), v(extra_cache), v(extra_indices), v(extra_lens), v(sink),
        v(out), v(indices.last());
    if (extra_indices.present()) v(extra_indices.last());
  }
};
inline Reason can_run(const SparseDecode& p) {
  const std::int64_t heads = p.q.dim(2);
  if (heads != 64 && heads != 128) [[unlikely]] {
    return fmt::format("{} query heads; the decode kernel takes 64 or 128", heads);
  }
  if (p.extra_cache.present()) {
    if (!p.extra_indices.present() || !p.extra_lens.present()) {
      return "compressed pages without indices and lengths";
    }
    if (Reason r = first(width_fits("extra indices", p.extra_indices, heads),
                         holds_rows("extra index", p.extra_indices, p.q.rows()))) {
      return r;
    }
  }
  return first(holds_rows("index", p.indices, p.q.rows()), holds_rows("length", p.lens, p.q.rows()),
               same("heads of q and sink", heads, p.sink.rows()),
               width_fits("indices", p.indices, heads));
}
inline Cost account(const SparseDecode& p) {
  std::int64_t keys = p.q.rows() * p.indices.last();
  std::int64_t bytes = keys * (4 + p.cache.last());
  if (p.extra_indices.present()) {
    const std::int64_t extra = p.q.rows() * p.extra_indices.last();
    bytes += extra * (4 + p.extra_cache.last());
    keys += extra;
  }
  return {bytes + 2 * p.q.payload_bytes(), 4 * keys * p.q.dim(2) * p.q.last(), 1};
}
void run(const SparseDecode& p, const Device& device);

struct ZeroFill {
  static constexpr std::string_view kernel = "zero_fill";
  Tensor out;
  std::int64_t rows() const { return out.rows(); }
  template <class V>
  void arguments(V& v) const {
    v(out);
  }
};
inline Reason can_run(const ZeroFill&) { return {}; }
inline Cost account(const ZeroFill& p) { return {p.out.payload_bytes(), 0, 1}; }
void run(const ZeroFill& p, const Device& device);

}  // namespace warmgate::engine::ops
