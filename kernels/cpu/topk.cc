#include "kernels/cpu/topk.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "kernels/cpu/scratch.h"

namespace warmgate::kernels::cpu {

namespace {

// Unsigned integers that order like the floats; -0 equals 0, NaN is the least.
std::uint32_t rank_of(float value) {
  if (value != value) return 0;
  const std::uint32_t u = std::bit_cast<std::uint32_t>(value + 0.0F);
  return (u >> 31) != 0 ? ~u : u | 0x80000000U;
}

void choose(const float* logits, std::int64_t count, std::int64_t topk, std::int32_t* out) {
  static thread_local Scratch<std::uint32_t> rank_scratch, order_scratch;
  std::uint32_t* ranks = rank_scratch.get(count);
  std::uint32_t* order = order_scratch.get(count);
  std::transform(logits, logits + count, ranks, rank_of);
  std::copy_n(ranks, count, order);
  std::nth_element(order, order + topk - 1, order + count, std::greater<>());
  const std::uint32_t last = order[topk - 1];
  const std::int64_t above =
      std::count_if(ranks, ranks + count, [last](auto r) { return r > last; });
  std::int64_t ties = topk - above;
  for (std::int64_t j = 0; j < count; ++j) {
    if (ranks[j] < last || (ranks[j] == last && ties-- <= 0)) continue;
    *out++ = static_cast<std::int32_t>(j);
  }
}

void fill_ascending(std::int64_t count, std::int64_t width, std::int32_t* out) {
  for (std::int64_t j = 0; j < count; ++j) out[j] = static_cast<std::int32_t>(j);
  std::fill(out + count, out + width, -1);
}

}  // namespace

void topk_per_row(const TopkPerRow& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const std::int64_t start = p.row_start != nullptr ? p.row_start[t] : 0;
    const std::int64_t count = std::max<std::int64_t>(p.row_end[t] - start, 0);
    std::int32_t* out = p.indices + t * p.indices_stride;
    if (count <= p.topk) {
      fill_ascending(count, p.topk, out);
    } else if (p.topk > 0) {
      choose(p.logits + t * p.logits_stride + start, count, p.topk, out);
    }
  }
}

void fill_short_context(const FillShortContext& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const std::int64_t entries = std::max<std::int64_t>((p.positions[t] + 1) / p.ratio, 0);
    fill_ascending(std::min(entries, p.topk), p.topk, p.indices + t * p.indices_stride);
  }
}

void global_topk_indices(const GlobalTopkIndices& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const std::int32_t* local = p.local + t * p.width;
    std::int32_t* global = p.global + t * p.width;
    std::int32_t count = 0;
    for (std::int64_t i = 0; i < p.width; ++i) {
      const bool chosen = local[i] >= 0;
      global[i] =
          chosen ? static_cast<std::int32_t>(p.table.slot(p.token_to_req[t], local[i])) : -1;
      count += chosen ? 1 : 0;
    }
    p.lens[t] = p.is_valid[t] != 0 ? count : 0;
  }
}

}  // namespace warmgate::kernels::cpu
