#include "harness/engine/memory/kv_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

namespace {

void add_member(CacheGroup& group, const std::vector<CacheModule>& modules, std::size_t index) {
  const CacheSpec& spec = modules[index].spec;
  group.cls = spec.cls;
  group.block_tokens = spec.block_tokens;
  group.window = spec.window;
  group.members.push_back({index, group.bytes});
  group.bytes += spec.padded_bytes;
}

}  // namespace

std::vector<CacheGroup> group_caches(const std::vector<CacheModule>& modules) {
  std::vector<CacheGroup> all(5);
  const char* names[] = {"full_mla", "c4_state", "c128_state", "swa_a", "swa_b"};
  for (std::size_t g = 0; g < all.size(); ++g) all[g].name = names[g];
  std::size_t windows = 0;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    switch (modules[i].spec.cls) {
      case CacheClass::kFullMla:
        add_member(all[0], modules, i);
        break;
      case CacheClass::kC4State:
        add_member(all[1], modules, i);
        break;
      case CacheClass::kC128State:
        add_member(all[2], modules, i);
        break;
      case CacheClass::kSwa:
        add_member(all[3 + windows++ % 2], modules, i);
        break;
    }
  }
  std::erase_if(all, [](const CacheGroup& g) { return g.members.empty(); });
  return all;
}

std::int64_t group_blocks(std::int64_t block_tokens, std::int64_t window, std::int64_t inflight,
                          std::int64_t length) {
  if (window == 0) return ceil_div(length, block_tokens);
  return ceil_div(std::min(window - 1 + inflight, length), block_tokens) + 1;
}

KvPlan plan_kv_cache(const Dims& dims, const std::vector<CacheModule>& modules,
                     const std::vector<CacheGroup>& groups, std::int64_t pool_bytes) {
  KvPlan plan;
  plan.pool_bytes = pool_bytes;
  for (const CacheGroup& group : groups) {
    KvGroup out;
    out.name = group.name;
    out.bytes = group.bytes;
    out.block_tokens = group.block_tokens;
    out.blocks_per_request =
        group_blocks(group.block_tokens, group.window, dims.inflight_tokens, dims.max_model_len);
    for (const auto& member : group.members) out.layers.push_back(modules[member.module].name);
    plan.blocks_per_request += out.blocks_per_request;
    plan.block_stride = std::max(plan.block_stride, group.bytes);
    plan.groups.push_back(std::move(out));
  }
  if (plan.block_stride <= 0) throw std::runtime_error("no layer declares a KV cache");
  plan.num_blocks = pool_bytes > 0 ? pool_bytes / plan.block_stride : 0;
  if (plan.num_blocks < plan.blocks_per_request) {
    throw std::runtime_error(fmt::format(
        "KV cache too small: one request of max_model_len {} needs {} blocks of {} bytes, {} bytes "
        "hold {}",
        dims.max_model_len, plan.blocks_per_request, plan.block_stride, pool_bytes,
        plan.num_blocks));
  }
  plan.concurrency =
      static_cast<double>(plan.num_blocks) / static_cast<double>(plan.blocks_per_request);
  plan.tokens =
      static_cast<std::int64_t>(plan.concurrency * static_cast<double>(dims.max_model_len));
  return plan;
}

}  // namespace warmgate::engine
