// Metadata: copies of what the scheduler knows, and the lists made from it.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "harness/engine/ops/metadata_lists.h"
#include "harness/engine/ops/run_tensor.h"

namespace warmgate::engine::ops {

using namespace glue;

namespace {

template <class T>
void write(const Device& device, const Tensor& to, std::span<const T> from) {
  device.write(to.address, std::as_bytes(from));
}

/// `from` to the front of `to`, then `rest` up to its end. A tensor may be absent.
template <class T>
void fill(const Device& device, const Tensor& to, std::span<const T> from, T rest) {
  if (!to.present()) return;
  const auto room = static_cast<std::size_t>(to.elements());
  if (from.size() > room) throw std::logic_error("more host values than the buffer has room for");
  if (const auto own = device.contents(to.address, to.payload_bytes()); !own.empty()) {
    T* out = at<T>(to);
    std::copy(from.begin(), from.end(), out);
    std::fill(out + from.size(), out + room, rest);
    return;
  }
  std::vector<T> all(room, rest);
  std::copy(from.begin(), from.end(), all.begin());
  write(device, to, std::span<const T>(all));
}

/// Rows `count` and on of lens [rows] i32 become 0.
void zero_behind(const Device& device, const Tensor& lens, std::int64_t count) {
  device.fill(lens.address + static_cast<std::uint64_t>(4 * count), 4 * (lens.rows() - count), 0);
}

template <class T>
T last_of(std::span<const T> values) {
  return values.empty() ? T{0} : values.back();
}

}  // namespace

void run(const Upload& p, const Device& device) {
  if (p.from.empty() && p.to.payload_bytes() > 0) throw std::logic_error("a copy of nothing");
  device.write(p.to.address, p.from);
}

void run(const PrepareInputs& p, const Device& device) {
  fill(device, p.in, p.query_start, last_of(p.query_start));
  fill(device, p.table, p.seq_lens, std::int32_t{0});
  if (!p.fills) return;
  fill(device, p.out, p.ids, std::int64_t{0});
  fill(device, p.out2, p.positions, std::int64_t{0});
}

void run(const SlotMapping& p, const Device& device) {
  fill(device, p.out, p.slots, std::int64_t{-1});
}

void run(const PrepareDraftInputs& p, const Device& device) {
  fill(device, p.query_start, p.host_query_start, last_of(p.host_query_start));
  fill(device, p.seq_lens, p.host_seq_lens, std::int32_t{0});
  fill(device, p.ids, p.host_ids, std::int64_t{0});
  fill(device, p.positions, p.host_positions, std::int64_t{0});
  if (!p.sample_indices.present()) return;
  // Every token of a block is sampled.
  std::vector<std::int64_t> rows(static_cast<std::size_t>(p.sample_indices.elements()), 0);
  for (std::int64_t i = 0; i < std::min(p.tokens, p.sample_indices.elements()); ++i)
    rows[static_cast<std::size_t>(i)] = i;
  write(device, p.sample_indices, std::span<const std::int64_t>(rows));
}

void run(const TokenToReq& p, const Device& device) {
  on(device, p.kernel)
      .token_to_req(
          {p.count, p.requests, i32(p.query_start), i64(p.in), i32(p.out), bytes(p.out2)});
}

void run(const SwaLists& p, const Device& device) {
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
  on(device, p.kernel).swa_indices(s);
  zero_behind(device, p.out2, p.count);
}

void run(const NoncausalLists& p, const Device& device) {
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
  on(device, p.kernel).noncausal_swa_indices(s);
  zero_behind(device, p.out2, p.count);
}

void run(const CompressedSlots& p, const Device& device) {
  kernel::SlotMapping s;
  s.tokens = p.count;
  s.capacity = p.out.rows();
  s.ratio = p.ratio;
  s.positions = i64(p.in);
  s.token_to_req = i32(p.token_to_req);
  s.table = table(p.table, p.block_rows);
  s.slots = i64(p.out);
  on(device, p.kernel).slot_mapping(s);
}

void run(const C128Lists& p, const Device& device) {
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
  on(device, p.kernel).compressed_indices(c);
}

void run(const DecodeContexts& p, const Device& device) {
  on(device, p.kernel).visible_entries({p.tokens, 4, i64(p.positions), i32(p.out)});
  if (!p.out2.present()) return;
  on(device, p.kernel)
      .expand_table({p.tokens, p.out2.last(), i32(p.token_to_req), table(p.table, p.block_rows),
                     i32(p.out2)});
}

// Scoring kernels find their shares of the work themselves, but what one that needs a schedule
// would read is defined: rows dealt out evenly, each from its first piece on.
void run(const ScoringSchedule& p, const Device& device) {
  const std::int64_t shares = std::max<std::int64_t>(1, p.out.rows() - 1);
  std::vector<std::int32_t> out(static_cast<std::size_t>(2 * p.out.rows()), 0);
  for (std::int64_t i = 0; i < p.out.rows(); ++i) {
    out[static_cast<std::size_t>(2 * i)] =
        static_cast<std::int32_t>(p.contexts * std::min(i, shares) / shares);
  }
  write(device, p.out, std::span<const std::int32_t>(out));
}

}  // namespace warmgate::engine::ops
