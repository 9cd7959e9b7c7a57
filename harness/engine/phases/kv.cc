#include <fmt/format.h>

#include <stdexcept>

#include "harness/engine/phases/phases.h"

namespace warmgate::engine::phases {

namespace {

/// available = requested - (consumed + headroom): what is lasting after profiling, and how far its
/// peak rose above that; together, the peak.
/// Origin: vLLM at d40c3e3c00, v1/worker/gpu_worker.py determine_available_memory.
std::int64_t pool_bytes(const Session& s) {
  if (s.config.limits.kv_pool_bytes) return *s.config.limits.kv_pool_bytes;
  std::int64_t available = s.requested_bytes - s.profile_peak_bytes;
  // The modelled engine leaves out what is made from here on: tables, slot mappings, metadata.
  if (s.seam_is("kv.sizing", "counts_what_follows")) available -= s.model->bytes_beside_slab();
  // What the device really has left: others may use it, and what runs on it takes memory that no
  // profile of ours counts.
  if (const auto free = device_named(s.config.device).free_bytes()) {
    constexpr std::int64_t kGraphs = std::int64_t{512} << 20;  // captured graphs, loaded code
    available = std::min(available, *free - s.model->bytes_beside_slab() - kGraphs);
  }
  if (available <= 0)
    throw std::runtime_error(
        fmt::format("no memory for the KV cache: {} of {} bytes were requested "
                    "(gpu_memory_utilization {}), profiling took {}",
                    s.requested_bytes, s.memory->total(), s.config.limits.gpu_memory_utilization,
                    s.profile_peak_bytes));
  return available;
}

void tell(Session& s) {
  const KvPlan& plan = s.plan;
  const std::int64_t bytes = plan.num_blocks * plan.block_stride;
  std::string groups = "[";
  for (const KvGroup& group : plan.groups) {
    groups += groups.size() > 1 ? ",{" : "{";
    groups += "\"name\":";
    trace::append_json_string(groups, group.name);
    groups +=
        fmt::format(",\"layers\":{},\"bytes\":{},\"block_tokens\":{},\"blocks_per_request\":{}}}",
                    group.layers.size(), group.bytes, group.block_tokens, group.blocks_per_request);
  }
  trace::Line line("kv");
  line.num("bytes", bytes).num("blocks", plan.num_blocks).num("tokens", plan.tokens);
  line.real("concurrency", plan.concurrency).num("blocks_per_request", plan.blocks_per_request);
  line.num("block_stride", plan.block_stride).raw("groups", groups + "]");
  // A pool of a given size has no budget: whoever gave it has counted.
  if (!s.config.limits.kv_pool_bytes) line.num("budget_bytes", s.requested_bytes);
  s.recorder.send(line);
  s.recorder.counter("kv_tokens", static_cast<double>(plan.tokens));
  s.recorder.counter("kv_blocks", static_cast<double>(plan.num_blocks));
  s.recorder.counter("kv_bytes", static_cast<double>(bytes));
  s.recorder.counter("concurrency", plan.concurrency);
  s.recorder.counter("blocks_per_request", static_cast<double>(plan.blocks_per_request));
  s.recorder.counter("block_stride_bytes", static_cast<double>(plan.block_stride));
}

}  // namespace

void kv(Session& s) {
  s.plan = s.model->plan_kv(pool_bytes(s));
  // Workers may have had different amounts left; the smallest decides.
  const std::int64_t blocks = s.collectives.all_min("world", s.plan.num_blocks);
  s.recorder.collective("world", "all_min", sizeof blocks, s.collectives.last_seq("world"));
  if (blocks != s.plan.num_blocks) s.plan = s.model->plan_kv(blocks * s.plan.block_stride);
  s.model->init_kv(s.plan);
  s.all_blocks = s.model->free_blocks();
  tell(s);
}

}  // namespace warmgate::engine::phases
