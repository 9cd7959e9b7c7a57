// Metadata on the host: copies of what the scheduler knows, and the lists made from it.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "harness/engine/ops/cpu_tensor.h"
#include "harness/engine/ops/metadata_lists.h"
#include "kernels/cpu/metadata.h"

namespace warmgate::engine::ops {

using namespace host;

namespace {

/// `from` to the front of `to`, then `rest` up to its end. A tensor may be absent.
template <class T>
void fill(const Tensor& to, std::span<const T> from, T rest) {
  if (!to.present()) return;
  T* out = at<T>(to);
  const auto room = static_cast<std::size_t>(to.elements());
  if (from.size() > room) throw std::logic_error("more host values than the buffer has room for");
  std::copy(from.begin(), from.end(), out);
  std::fill(out + from.size(), out + room, rest);
}

template <class T>
T last_of(std::span<const T> values) {
  return values.empty() ? T{0} : values.back();
}

}  // namespace

void run(const Upload& p, const Device& device) {
  need_host("copy", device);
  if (p.from.empty() && p.to.payload_bytes() > 0) throw std::logic_error("a copy of nothing");
  std::memcpy(at<void>(p.to), p.from.data(), p.from.size());
}

void run(const PrepareInputs& p, const Device& device) {
  need_host(p.kernel, device);
  fill(p.in, p.query_start, last_of(p.query_start));
  fill(p.table, p.seq_lens, std::int32_t{0});
  if (!p.fills) return;
  fill(p.out, p.ids, std::int64_t{0});
  fill(p.out2, p.positions, std::int64_t{0});
}

void run(const SlotMapping& p, const Device& device) {
  need_host(p.kernel, device);
  fill(p.out, p.slots, std::int64_t{-1});
}

void run(const PrepareDraftInputs& p, const Device& device) {
  need_host(p.kernel, device);
  fill(p.query_start, p.host_query_start, last_of(p.host_query_start));
  fill(p.seq_lens, p.host_seq_lens, std::int32_t{0});
  fill(p.ids, p.host_ids, std::int64_t{0});
  fill(p.positions, p.host_positions, std::int64_t{0});
  if (!p.sample_indices.present()) return;
  std::int64_t* rows = i64(p.sample_indices);  // every token of a block is sampled
  for (std::int64_t i = 0; i < p.sample_indices.elements(); ++i) rows[i] = i < p.tokens ? i : 0;
}

void run(const TokenToReq& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::token_to_req(
      {p.count, p.requests, i32(p.query_start), i64(p.in), i32(p.out), bytes(p.out2)});
}

void run(const SwaLists& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::SwaIndices s;
  s.tokens = p.count;
  s.window = p.window;
  s.width = p.out.last();
  s.positions = i64(p.in) + p.first_token;
  s.token_to_req = i32(p.token_to_req) + p.first_token;
  s.is_valid = bytes(p.is_valid) + p.first_token;
  s.table = table(p.table, p.block_tokens);
  s.indices = i32(p.out);
  s.lens = i32(p.out2);
  kernel::swa_indices(s);
  std::fill(i32(p.out2) + p.count, i32(p.out2) + p.out2.rows(), 0);
}

void run(const NoncausalLists& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::NoncausalSwaIndices s;
  s.tokens = p.count;
  s.window = p.window;
  s.width = p.out.last();
  s.query_start = i32(p.query_start);
  s.seq_lens = i32(p.seq_lens);
  s.token_to_req = i32(p.token_to_req);
  s.is_valid = bytes(p.is_valid);
  s.table = table(p.table, p.block_tokens);
  s.indices = i32(p.out);
  s.lens = i32(p.out2);
  kernel::noncausal_swa_indices(s);
  std::fill(i32(p.out2) + p.count, i32(p.out2) + p.out2.rows(), 0);
}

void run(const CompressedSlots& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::SlotMapping s;
  s.tokens = p.count;
  s.capacity = p.out.rows();
  s.ratio = p.ratio;
  s.positions = i64(p.in);
  s.token_to_req = i32(p.token_to_req);
  s.table = table(p.table, p.block_rows);
  s.slots = i64(p.out);
  kernel::slot_mapping(s);
}

void run(const C128Lists& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::CompressedIndices c;
  c.tokens = p.count;
  c.ratio = 128;
  c.width = p.out.last();
  c.positions = i64(p.in) + p.first_token;
  c.token_to_req = i32(p.token_to_req) + p.first_token;
  c.is_valid = bytes(p.is_valid) + p.first_token;
  if (p.out2.present()) c.table = table(p.table, p.block_rows);
  c.indices = i32(p.out);
  c.lens = i32(p.out2);
  kernel::compressed_indices(c);
}

void run(const DecodeContexts& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::visible_entries({p.tokens, 4, i64(p.positions), i32(p.out)});
  if (!p.out2.present()) return;
  kernel::expand_table(
      {p.tokens, p.out2.last(), i32(p.token_to_req), table(p.table, p.block_rows), i32(p.out2)});
}

// The schedule is for multiprocessors; one thread needs none, but what it would read is defined:
// rows dealt out evenly, each from its first piece on.
void run(const ScoringSchedule& p, const Device& device) {
  need_host(p.kernel, device);
  std::int32_t* out = i32(p.out);
  const std::int64_t shares = std::max<std::int64_t>(1, p.out.rows() - 1);
  for (std::int64_t i = 0; i < p.out.rows(); ++i) {
    out[2 * i] = static_cast<std::int32_t>(p.contexts * std::min(i, shares) / shares);
    out[2 * i + 1] = 0;
  }
}

}  // namespace warmgate::engine::ops
