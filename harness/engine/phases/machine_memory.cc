#include "harness/engine/phases/machine_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "harness/engine/layers/weight_source.h"
#include "harness/engine/memory/kv_plan.h"
#include "harness/engine/memory/workspace_plan.h"
#include "harness/engine/ops/device.h"

namespace warmgate::engine {

namespace {

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

std::int64_t read_bytes(const std::vector<WeightSpec>& specs, const Dims& dims,
                        const scenario::Model& model) {
  std::int64_t sum = 0;
  for (const WeightSpec& spec : specs) {
    if (source_of(spec, dims, model, 0).fill == WeightSource::Fill::kNone) continue;
    sum += spec.tensor.rank == 3 ? spec.bytes / spec.tensor.rows() : spec.bytes;
  }
  return sum;
}

std::vector<Kind> kinds_of(const scenario::Resolved& config, const Dims& dims) {
  std::vector<Kind> out;
  for (std::int64_t id = 0; id < dims.layers + dims.draft_layers; ++id)
    out.push_back(kind_of_ratio(scenario::effective_ratio(config.model, id)));
  return out;
}

/// Tokens of the longest request, and requests that can be there at once.
struct Load {
  std::int64_t tokens = 0, requests = 0;
};
Load load_of(const scenario::Resolved& config) {
  Load out;
  for (const scenario::RequestGroup& group : config.workload.groups) {
    out.requests += group.count;
    out.tokens = std::max(out.tokens, group.prompt_tokens + group.output_tokens);
  }
  out.tokens = std::min(out.tokens, config.limits.max_model_len);
  out.requests = std::min(out.requests, config.limits.max_num_seqs);
  return out;
}

std::int64_t cache_bytes(const scenario::Resolved& config, const Dims& dims,
                         const std::vector<CacheGroup>& groups) {
  const Load load = load_of(config);
  std::int64_t one = 0;
  for (const CacheGroup& group : groups) {
    one += group.bytes * group_blocks(group.block_tokens, group.window, dims.inflight_tokens,
                                      std::max<std::int64_t>(load.tokens, 1));
  }
  const std::int64_t slab = config.limits.kv_pool_bytes.value_or(config.limits.device_memory_bytes);
  return std::min(one * load.requests, slab);
}

std::int64_t buffer_bytes(const Dims& dims, const std::vector<CacheGroup>& groups) {
  std::int64_t sum = dims.max_tokens * (dims.topk * 4 + 2 * dims.window * 4 + 64);
  if (dims.has(Kind::kC128a)) sum += 2 * 4 * dims.max_tokens * dims.c128a_stride();
  for (const CacheGroup& group : groups) {
    // A table on the host, one on the device.
    sum += 2 * 4 * dims.max_seqs * ceil_div(dims.max_model_len, group.block_tokens);
    sum += 2 * 8 * dims.max_tokens;
  }
  return sum;
}

std::int64_t workspace_bytes(const Dims& dims) {
  std::int64_t most = 0;
  for (const WorkspaceRow& row : workspace_plan(dims, "index_width"))
    most = std::max(most, row.needed);
  return most;
}

std::int64_t activation_bytes(const Dims& dims) {
  const std::int64_t heads = dims.padded_heads * dims.head_dim;
  // Residual copies and what goes in and out of a layer; query twice and output; projections;
  // compressor products; output projection.
  const std::int64_t row =
      2 * dims.hidden * (dims.hc + 4) + 2 * 3 * heads + 2 * (dims.q_lora + 2 * dims.head_dim) * 2 +
      4 * (4 * dims.head_dim + 4 * dims.index_dim) + dims.index_heads * (3 * dims.index_dim + 8) +
      4 * dims.rank_heads * dims.head_dim + 2 * dims.rank_groups * dims.o_lora;
  // A rank's own, and where there are others those of all.
  const std::int64_t logits = std::min(dims.max_tokens, dims.max_seqs * (1 + dims.speculative)) *
                              4 * (dims.tp == 1 ? dims.vocab : dims.vocab + dims.rank_vocab);
  const std::int64_t scores =
      dims.has(Kind::kC4a)
          ? std::min<std::int64_t>(kMaxLogitsBytes, dims.max_tokens * dims.max_model_len)
          : 0;
  return dims.max_tokens * row + logits + scores;
}

/// The number behind `name` in a file of lines like /proc/meminfo; -1 if there is none.
std::int64_t number_in(const char* path, const std::string& name) {
  std::ifstream in(path);
  for (std::string word; in >> word;) {
    std::int64_t value = -1;
    if (word == name && in >> value) return value;
  }
  return -1;
}
std::int64_t first_number(const char* path) {
  std::ifstream in(path);
  std::int64_t value = -1;
  return in >> value ? value : -1;
}

}  // namespace

MemoryNeed memory_need(const scenario::Resolved& config) {
  const Dims dims = make_dims(config);
  const std::vector<Kind> kinds = kinds_of(config, dims);
  const std::vector<CacheGroup> groups = group_caches(cache_modules(dims, kinds));
  MemoryNeed need;
  need.weights = read_bytes(model_weights(dims), dims, config.model) +
                 read_bytes(drafter_weights(dims, config), dims, config.model);
  for (const Kind kind : kinds)
    need.weights += read_bytes(layer_weights(dims, config.model, kind, false), dims, config.model);
  need.rope = 2 * 4 * dims.rope_dim * std::min(dims.rope_rows, dims.max_model_len);
  need.kv_cache = cache_bytes(config, dims, groups);
  need.buffers = buffer_bytes(dims, groups);
  need.workspace = workspace_bytes(dims);
  need.activations = activation_bytes(dims);
  return need;
}

std::int64_t available_memory() {
  std::int64_t out = kUnknown;
  if (const std::int64_t kib = number_in("/proc/meminfo", "MemAvailable:"); kib >= 0)
    out = kib * 1024;
  // Version 2; "max" is no number, and no limit.
  const std::int64_t most = first_number("/sys/fs/cgroup/memory.max");
  const std::int64_t used = first_number("/sys/fs/cgroup/memory.current");
  if (most >= 0 && used >= 0) out = std::min(out, std::max<std::int64_t>(0, most - used));
  return out;
}

void check_fits(const scenario::Resolved& config, int world, std::int64_t available) {
  MemoryNeed need;
  try {
    const Device& device = device_named(config.device);
    if (!device.executes()) return;
    need = memory_need(config);
    if (const auto free = device.free_bytes()) {
      // Of the device's memory the whole pool is taken at once.
      need.kv_cache = std::max(need.kv_cache, config.limits.kv_pool_bytes.value_or(0));
      available = *free;
    }
  } catch (const std::exception&) {
    return;
  }
  if (need.total() <= available / world) return;
  throw TooLarge(
      fmt::format("device {} needs {} bytes of memory, {} are available: {} rank{} "
                  "of {} for weights, {} for rotary tables, {} for the KV cache, {} for buffers, "
                  "{} for the workspace, {} for activations",
                  config.device, need.total() * world, available, world, world == 1 ? "" : "s",
                  need.weights, need.rope, need.kv_cache, need.buffers, need.workspace,
                  need.activations),
      need.total() * world, available);
}

}  // namespace warmgate::engine
