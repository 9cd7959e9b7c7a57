#include "harness/scenario/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace warmgate::scenario {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t to) { return ceil_div(a, to) * to; }

}  // namespace

std::int64_t kv_block_bytes(const Resolved& resolved) {
  const Model& m = resolved.model;
  std::int64_t c4 = 0, c128 = 0;
  for (std::int64_t id = 0; id < m.num_hidden_layers; ++id) {
    const std::int64_t ratio = effective_ratio(m, id);
    c4 += ratio == 4 ? 1 : 0;
    c128 += ratio == 128 ? 1 : 0;
  }
  const std::int64_t layers =
      m.num_hidden_layers + (resolved.drafter.active() ? resolved.drafter.layers : 0);
  const std::int64_t nope = m.head_dim - m.qk_rope_head_dim;
  const std::int64_t key = nope + 2 * m.qk_rope_head_dim + round_up(ceil_div(nope, 64), 8);
  const bool fp4 = m.indexer_cache_dtype == "fp4";
  const std::int64_t indexer =
      fp4 ? m.index_head_dim / 2 + m.index_head_dim / 32 : m.index_head_dim + 4;
  const auto page = [&](std::int64_t rows, std::int64_t bytes) {
    return round_up(rows * bytes, m.head_dim + m.qk_rope_head_dim);
  };
  constexpr std::int64_t kFloat = 4;
  const std::int64_t full = c4 * (page(64, key) + page(64, indexer)) + c128 * page(2, key);
  const std::int64_t c4_state =
      c4 * (page(4, 4 * m.head_dim * kFloat) + page(4, 4 * m.index_head_dim * kFloat));
  const std::int64_t c128_state = c128 * page(8, 2 * m.head_dim * kFloat);
  const std::int64_t window = ceil_div(layers, 2) * page(64, key);  // two groups, in turns
  return std::max({full, c4_state, c128_state, window});
}

void check_blocks(const Resolved& resolved, const WrongAt& wrong) {
  const Limits& l = resolved.limits;
  const std::int64_t block = kv_block_bytes(resolved);
  if (block <= 0) return;
  // Fits: a block of 512 layers of the widest rows is below 2^31 bytes.
  const std::int64_t most = kMostBlocks * block + (block - 1);
  const auto text = [&](std::int64_t pool, std::int64_t allowed) {
    return fmt::format(
        "{} bytes are {} KV blocks of {} bytes; block ids are 32 bits wide, so {} are the most: at "
        "most {} bytes",
        pool, pool / block, block, kMostBlocks, allowed);
  };
  if (l.kv_pool_bytes) {
    if (*l.kv_pool_bytes > most) wrong({"limits", "kv_pool_bytes"}, text(*l.kv_pool_bytes, most));
    return;
  }
  // What the engine itself takes is not known here, so this is the largest pool there could be.
  const double share = l.gpu_memory_utilization;
  const double pool = std::ceil(static_cast<double>(l.device_memory_bytes) * share);
  if (pool <= static_cast<double>(most)) return;
  wrong({"limits", "device_memory_bytes"},
        text(static_cast<std::int64_t>(pool),
             static_cast<std::int64_t>(std::floor(static_cast<double>(most) / share))) +
            fmt::format(" of memory with gpu_memory_utilization {}", share));
}

void check_rope_rows(const Model& model, const WrongAt& wrong) {
  const auto length = static_cast<double>(model.original_max_position_embeddings);
  if (model.rope_factor * length <= static_cast<double>(kMostRopeRows)) return;
  wrong({"model", "rope_factor"},
        fmt::format("{} times original_max_position_embeddings {} are more than {} positions; at "
                    "most {:.6g}",
                    model.rope_factor, model.original_max_position_embeddings, kMostRopeRows,
                    static_cast<double>(kMostRopeRows) / length));
}

void check_requests(const Workload& workload, const WrongAt& wrong) {
  std::int64_t sum = 0;
  for (const RequestGroup& group : workload.groups) sum += group.count;
  if (sum <= kMostRequests) return;
  wrong({"workload", "groups"}, fmt::format("{} requests in all; at most {}", sum, kMostRequests));
}

}  // namespace warmgate::scenario
