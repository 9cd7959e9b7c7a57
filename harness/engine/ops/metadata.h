// What a step tells the device: inputs and slots copied from the host's arrays, and the kernels
// without compile keys that fill metadata buffers from them.
#pragma once

#include <span>

#include "harness/engine/ops/check.h"

namespace warmgate::engine::ops {

/// A copy of host bytes over all of `to`. No launch. `from` may be left empty where nothing is
/// executed: what is copied follows from `to`.
struct Upload {
  Tensor to;
  std::span<const std::byte> from;
};
inline Reason can_run(const Upload& p) {
  const auto bytes = static_cast<std::int64_t>(p.from.size());
  if (bytes == 0 || bytes == p.to.payload_bytes()) [[likely]]
    return {};
  return fmt::format("{} bytes for {}", bytes, shape_text(p.to));
}
inline Cost account(const Upload& p) { return {p.to.payload_bytes(), 0, 0}; }
void run(const Upload& p, const Device& device);

template <class T>
Upload upload(const Tensor& to, std::span<const T> from) {
  return {to, std::as_bytes(from)};
}

/// What the metadata kernels below have in common: `count` rows of `out` (and of `out2` if present)
/// are written from the inputs.
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

/// prepare_inputs: in = query_start [S+1] i32, table = seq_lens [S] i32, out = ids [B] i64, out2 =
/// positions [B] i64; all four from the host. Behind the step's requests query_start stays at its
/// last value and seq_lens are 0.
struct PrepareInputs : FillMetadata {
  std::span<const std::int32_t> query_start, seq_lens;  // [requests+1], [requests]
  std::span<const std::int64_t> ids, positions;         // [count]
  bool fills = true;  // false: ids and positions stay as they are on the device
};
void run(const PrepareInputs& p, const Device& device);

/// compute_slot_mapping: in = positions, table = block table, out = slots [B] i64, from the host:
/// -1 behind the step's tokens.
struct SlotMapping : FillMetadata {
  std::span<const std::int64_t> slots;  // [B]
};
void run(const SlotMapping& p, const Device& device);

/// compute_token_to_req_and_valid: in = slots [B] i64, out = token_to_req [B] i32, out2 = is_valid
/// [B] bool (slot >= 0). Of `requests` requests with query_start [requests+1] i32.
struct TokenToReq : FillMetadata {
  Tensor query_start;
  std::int64_t requests = 0;
};
void run(const TokenToReq& p, const Device& device);

/// The drafter's query block: ids, positions, sample rows of `requests` requests, `per_request`
/// tokens each, into input buffers of a fixed number of rows. What the host knows is copied.
/// Origin: vLLM at d40c3e3c00, v1/worker/gpu/spec_decode/dflash/speculator.py
/// _prepare_dflash_inputs.
struct PrepareDraftInputs {
  static constexpr std::string_view kernel = "prepare_dflash_inputs";
  std::int64_t tokens = 0;
  Tensor ids, positions, slots, sample_indices;
  Tensor query_start = {}, seq_lens = {};  // [S+1], [S] i32
  std::span<const std::int32_t> host_query_start = {}, host_seq_lens = {};
  std::span<const std::int64_t> host_ids = {}, host_positions = {};
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
void run(const PrepareDraftInputs& p, const Device& device);

}  // namespace warmgate::engine::ops
