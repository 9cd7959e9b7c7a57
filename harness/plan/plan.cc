#include "harness/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace warmgate::plan {
namespace {

std::int64_t number_in(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<std::int64_t>() : 0;
}

// `pools: {name: {live, peak}}`, or one number for both.
std::map<std::string, PoolUse> pools_of(const trace::Event& event) {
  std::map<std::string, PoolUse> out;
  const nlohmann::json* pools = event.body.nested("pools");
  if (pools == nullptr || !pools->is_object()) return out;
  for (const auto& [name, use] : pools->items()) {
    if (use.is_number()) out[name] = {use.get<std::int64_t>(), use.get<std::int64_t>()};
    if (use.is_object()) out[name] = {number_in(use, "live"), number_in(use, "peak")};
  }
  return out;
}

std::vector<PhaseMemory> phases_of(const trace::Trace& trace, int rank) {
  std::vector<PhaseMemory> out;
  for (const trace::Event* e : trace.of("phase_end")) {
    if (e->rank.value_or(0) != rank || !e->body.contains("peak_bytes")) continue;
    out.push_back({e->str("phase"), e->str("status"), e->num("peak_bytes"),
                   e->num("persistent_bytes"), e->num("transient_peak_bytes"), pools_of(*e)});
  }
  return out;
}

bool same_memory(const std::vector<PhaseMemory>& a, const std::vector<PhaseMemory>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const PhaseMemory& x, const PhaseMemory& y) {
        return x.phase == y.phase && x.status == y.status && x.peak_bytes == y.peak_bytes &&
               x.persistent_bytes == y.persistent_bytes && x.pools == y.pools;
      });
}

CacheGroup group_of(const nlohmann::json& json) {
  CacheGroup out;
  if (json.contains("name") && json["name"].is_string()) out.name = json["name"];
  if (json.contains("layers"))
    out.layers = json["layers"].is_array() ? static_cast<std::int64_t>(json["layers"].size())
                                           : number_in(json, "layers");
  out.bytes = number_in(json, "bytes");
  out.block_tokens = number_in(json, "block_tokens");
  out.blocks_per_request = number_in(json, "blocks_per_request");
  return out;
}

std::optional<Capacity> capacity_of(const trace::Trace& trace) {
  for (const trace::Event* e : trace.of("kv")) {
    if (e->rank.value_or(0) != 0) continue;
    Capacity out;
    out.bytes = e->num("bytes");
    out.blocks = e->num("blocks");
    out.tokens = e->num("tokens");
    out.concurrency = e->real("concurrency");
    out.block_stride = e->num("block_stride");
    out.blocks_per_request = e->num("blocks_per_request");
    if (const nlohmann::json* groups = e->body.nested("groups"); groups && groups->is_array()) {
      for (const auto& group : *groups) {
        if (group.is_object()) out.groups.push_back(group_of(group));
      }
    }
    return out;
  }
  return std::nullopt;
}

// In bytes; several events of one consumer (one a phase, say) are one row with the last word.
std::vector<WorkspaceRow> workspace_of(const trace::Trace& trace) {
  std::vector<WorkspaceRow> out;
  for (const trace::Event* e : trace.of("workspace_plan")) {
    if (e->rank.value_or(0) != 0) continue;
    WorkspaceRow row{e->str("layer_kind"), e->str("consumer"), e->num("reserved"),
                     e->num("needed")};
    const auto same = std::find_if(out.begin(), out.end(), [&](const WorkspaceRow& r) {
      return r.layer_kind == row.layer_kind && r.consumer == row.consumer;
    });
    if (same == out.end())
      out.push_back(std::move(row));
    else
      *same = std::move(row);
  }
  return out;
}

}  // namespace

bool Plan::same_as(const Plan& other) const {
  const auto capacity_json = [](const Plan& p) {
    nlohmann::ordered_json json = to_json(p);
    json.erase("variants");
    return json;
  };
  return capacity_json(*this) == capacity_json(other);
}

Plan plan_of(const verdict::RunRecord& run) {
  Plan out;
  out.variants = {run.variant};
  if (run.outcome != verdict::Outcome::kPassed) {
    out.stopped = fmt::format("{}{}{}", verdict::to_string(run.outcome),
                              run.phase.empty() ? "" : " in " + run.phase,
                              run.reason.empty() ? "" : ": " + run.reason);
  }
  out.phases = phases_of(run.trace, 0);
  std::set<int> ranks;
  for (const trace::Event& e : run.trace.events) {
    if (e.rank && *e.rank > 0) ranks.insert(*e.rank);
  }
  for (const int rank : ranks) {
    if (!same_memory(out.phases, phases_of(run.trace, rank))) out.other_ranks.push_back(rank);
  }
  out.capacity = capacity_of(run.trace);
  out.workspace = workspace_of(run.trace);
  if (out.phases.empty()) out.not_observed.push_back("memory: no phase said what it took");
  if (!out.capacity) out.not_observed.push_back("capacity: the start did not get to the kv phase");
  if (out.workspace.empty())
    out.not_observed.push_back("workspace: the engine did not say what it reserves");
  return out;
}

std::vector<Plan> plans_of(const run::ScenarioResult& result) {
  std::vector<Plan> out;
  for (const run::VariantResult& variant : result.variants) {
    if (variant.runs.empty()) continue;
    Plan plan = plan_of(variant.runs.front());
    plan.variants = {variant.variant.name};
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const Plan& p) { return p.same_as(plan); });
    if (same == out.end())
      out.push_back(std::move(plan));
    else
      same->variants.push_back(variant.variant.name);
  }
  return out;
}

nlohmann::ordered_json to_json(const Plan& plan) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["variants"] = plan.variants;
  out["stopped"] = plan.stopped;
  out["phases"] = Json::array();
  for (const PhaseMemory& p : plan.phases) {
    Json pools = Json::object();
    for (const auto& [name, use] : p.pools)
      pools[name] = {{"live_bytes", use.live}, {"peak_bytes", use.peak}};
    out["phases"].push_back({{"phase", p.phase},
                             {"status", p.status},
                             {"peak_bytes", p.peak_bytes},
                             {"persistent_bytes", p.persistent_bytes},
                             {"transient_peak_bytes", p.transient_peak_bytes},
                             {"pools", std::move(pools)}});
  }
  out["ranks_that_differ"] = plan.other_ranks;
  out["kv"] = nullptr;
  if (plan.capacity) {
    const Capacity& c = *plan.capacity;
    Json groups = Json::array();
    for (const CacheGroup& g : c.groups) {
      groups.push_back({{"name", g.name},
                        {"layers", g.layers},
                        {"bytes", g.bytes},
                        {"block_tokens", g.block_tokens},
                        {"blocks_per_request", g.blocks_per_request}});
    }
    out["kv"] = {{"kv_bytes", c.bytes},
                 {"kv_blocks", c.blocks},
                 {"block_stride_bytes", c.block_stride},
                 {"blocks_per_request", c.blocks_per_request},
                 {"kv_tokens", c.tokens},
                 {"concurrency", c.concurrency},
                 {"groups", std::move(groups)}};
  }
  out["workspace"] = Json::array();
  for (const WorkspaceRow& w : plan.workspace) {
    out["workspace"].push_back({{"layer_kind", w.layer_kind},
                                {"consumer", w.consumer},
                                {"reserved_bytes", w.reserved},
                                {"needed_bytes", w.needed},
                                {"shortfall_bytes", w.shortfall()}});
  }
  out["not_observed"] = plan.not_observed;
  return out;
}

}  // namespace warmgate::plan
