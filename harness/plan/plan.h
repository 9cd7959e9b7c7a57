// What a start would take, read from the trace of one run on meta: memory a phase, cache groups,
// capacity, the shared workspace. Nothing is computed here that the engine did not say.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/run.h"

namespace warmgate::plan {

inline constexpr const char* kPlanSchema = "plan/1.0";

struct PoolUse {
  std::int64_t live = 0, peak = 0;  // bytes; at the end of the phase, and its highest
  bool operator==(const PoolUse&) const = default;
};

struct PhaseMemory {
  std::string phase, status;
  std::int64_t peak_bytes = 0, persistent_bytes = 0, transient_peak_bytes = 0;
  std::map<std::string, PoolUse> pools;
};

struct CacheGroup {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t bytes = 0;  // of one block, over all layers of the group
  std::int64_t block_tokens = 0;
  std::int64_t blocks_per_request = 0;  // one request of max_model_len
};

struct Capacity {
  std::int64_t bytes = 0, blocks = 0, block_stride = 0, blocks_per_request = 0, tokens = 0;
  double concurrency = 0;
  std::vector<CacheGroup> groups;
};

/// One consumer of the shared workspace: what profiling reserved for it against what serving may
/// ask at the configured limits. Bytes after rounding.
struct WorkspaceRow {
  std::string layer_kind, consumer;  // attention indexer topk
  std::int64_t reserved = 0, needed = 0;
  std::int64_t shortfall() const { return needed > reserved ? needed - reserved : 0; }
};

struct Plan {
  std::vector<std::string> variants;  // whose plans are all equal to this one
  std::string stopped;                // "" or where and why the start ended early
  std::vector<PhaseMemory> phases;    // of rank 0
  std::vector<int> other_ranks;       // whose phases take other amounts
  std::optional<Capacity> capacity;   // nothing if the start did not get so far
  std::vector<WorkspaceRow> workspace;
  std::vector<std::string> not_observed;
  bool same_as(const Plan& other) const;  // in everything but `variants`
};

Plan plan_of(const verdict::RunRecord& run);
/// One plan for each distinct one, in order of first appearance.
std::vector<Plan> plans_of(const run::ScenarioResult& result);

nlohmann::ordered_json to_json(const Plan& plan);

}  // namespace warmgate::plan
