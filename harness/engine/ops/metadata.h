// Kernels that fill metadata buffers from lengths, tables and slots, without compile keys.
#pragma once

#include "harness/engine/ops/check.h"

namespace warmgate::engine::ops {

/// Writes `count` rows of `out` (and of `out2` if present) from the inputs. Which kernel it is, and
/// thus what it computes, is in the name; the bounds are the same for all.
struct FillMetadata {
  std::string_view kernel;
  std::int64_t count = 0;
  Tensor in, table, out, out2;
  std::int64_t rows() const { return count; }
  template <class V>
  void arguments(V& v) const {
    v(in), v(table), v(out), v(out2), v(count);
  }
};
inline Reason can_run(const FillMetadata& p) {
  if (Reason r = holds_rows("output buffer", p.out, p.count)) return r;
  if (p.out2.present()) return holds_rows("second output buffer", p.out2, p.count);
  return {};
}
inline Cost account(const FillMetadata& p) {
  std::int64_t row = p.out.rows() > 0 ? p.out.payload_bytes() / p.out.rows() : 0;
  if (p.out2.present() && p.out2.rows() > 0) row += p.out2.payload_bytes() / p.out2.rows();
  return {p.count * (8 + row), 0, 1};
}

/// The drafter's query block: ids, positions, sample rows of `requests` requests, `per_request`
/// tokens each, into input buffers of a fixed number of rows.
/// Origin: vLLM at d40c3e3c00, v1/worker/gpu/spec_decode/dflash/speculator.py
/// _prepare_dflash_inputs.
struct PrepareDraftInputs {
  static constexpr std::string_view kernel = "prepare_dflash_inputs";
  std::int64_t tokens = 0;
  Tensor ids, positions, slots, sample_indices;
  std::int64_t rows() const { return tokens; }
  template <class V>
  void arguments(V& v) const {
    v(ids), v(positions), v(slots), v(sample_indices);
  }
};
inline Reason can_run(const PrepareDraftInputs& p) {
  return first(holds_rows("draft input id", p.ids, p.tokens),
               holds_rows("draft position", p.positions, p.tokens));
}
inline Cost account(const PrepareDraftInputs& p) { return {24 * p.tokens, 0, 1}; }

}  // namespace warmgate::engine::ops
