// For tests: seeded random configurations of the engine, boundary values first.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "harness/engine/memory/kv_plan.h"
#include "harness/scenario/resolved.h"
#include "harness/scenario/seams.h"

namespace warmgate::engine::test {

/// Five layers, all kinds, no drafter, default seams; small enough to run in a few milliseconds.
inline scenario::Resolved small_config() {
  scenario::Resolved config;
  scenario::Model& m = config.model;
  m.name = "small";
  m.hidden_size = 512;
  m.num_hidden_layers = 5;
  m.num_attention_heads = 8;
  m.q_lora_rank = 128;
  m.o_groups = 4;
  m.o_lora_rank = 128;
  m.index_n_heads = 8;
  m.vocab_size = 4096;
  m.n_routed_experts = 8;
  m.num_experts_per_tok = 2;
  m.n_shared_experts = 1;
  m.moe_intermediate_size = 256;
  m.num_hash_layers = 1;
  m.compress_ratios = {0, 4, 128, 4, 128};
  config.limits.max_model_len = 4096;
  config.limits.max_num_batched_tokens = 512;
  config.limits.max_num_seqs = 64;
  config.limits.device_memory_bytes = 288'000'000'000;
  config.workload.groups = {{2, 64, 8, 0, "greedy"}};
  config.architectures = {"sm_90a"};
  for (const scenario::SeamRule& seam : scenario::seams())
    config.seams[std::string(seam.name)] = seam.values.front();
  return config;
}

inline void add_drafter(scenario::Resolved& config, const std::string& method, std::int64_t n) {
  scenario::Drafter& d = config.drafter;
  d.method = method;
  d.num_speculative_tokens = n;
  d.layers = method == "dspark" ? 3 : 1;
  d.block_size = method == "dspark" ? 5 : 1;
  d.markov_rank = 64;
  d.noise_token_id = 4095;
  const std::int64_t last = config.model.num_hidden_layers - 1;
  d.target_layer_ids = {std::max<std::int64_t>(0, last - 2), std::max<std::int64_t>(0, last - 1),
                        last};
}

class RandomConfigs {
 public:
  explicit RandomConfigs(std::uint64_t seed) : random_(seed) {}

  scenario::Resolved next() {
    scenario::Resolved config = small_config();
    config.seed = between(0, 1 << 30);
    model(config.model);
    limits(config.limits);
    config.parallel.tp = one_of({1, 1, 1, 2, 4});
    const std::int64_t drafter = between(0, 4);
    if (drafter == 1) add_drafter(config, "dspark", one_of({5, 7}));
    if (drafter == 2) add_drafter(config, "mtp", one_of({1, 2, 3}));
    if (drafter == 3) add_drafter(config, "dspark", 7);
    if (config.drafter.active() && between(0, 2) == 0)
      config.drafter.topk_indices_buffer = "absent";
    // The scenario language refuses fewer tokens a step than a verification takes.
    config.limits.max_num_batched_tokens =
        std::max(config.limits.max_num_batched_tokens, 1 + config.drafter.num_speculative_tokens);
    config.architectures = {one_of<std::string>({"sm_90a", "sm_80", "sm_100a", "sm_120a"})};
    workload(config);
    if (between(0, 1) == 0) config.limits.kv_pool_bytes = pool(config);
    return config;
  }

 private:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  template <class T = std::int64_t>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(
        between(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

  void model(scenario::Model& m) {
    m.num_hidden_layers = between(1, 7);
    m.num_hash_layers = between(0, 2);
    m.index_topk = one_of({512, 512, 1024});
    m.indexer_cache_dtype = one_of<std::string>({"fp8", "fp8", "fp4"});
    m.num_attention_heads = one_of({8, 8, 64});
    m.compress_ratios.clear();
    // Shorter than the model, as long, or with entries for draft layers behind it.
    const std::int64_t entries = m.num_hidden_layers + between(-1, 3);
    for (std::int64_t i = 0; i < entries; ++i)
      m.compress_ratios.push_back(one_of({0, 1, 4, 4, 128, 128}));
  }
  void limits(scenario::Limits& l) {
    l.max_model_len = one_of({1,    2,    4,    5,    15,   16,   17,    127,   128,    129,    256,
                              2047, 2048, 2049, 2051, 2052, 4096, 16384, 65536, 262144, 1048576});
    l.max_num_batched_tokens =
        one_of({1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 127, 128, 255, 512, 2048, 8192});
    l.max_num_seqs = one_of({1, 2, 3, 4, 5, 6, 7, 8, 31, 32, 33, 64, 256});
    l.async_scheduling = between(0, 2) > 0;
  }
  void workload(scenario::Resolved& config) {
    const auto& l = config.limits;
    // A few dozen chunks at most: a long prompt one token a step says nothing new.
    const std::int64_t longest = std::min(l.max_model_len, 12 * l.max_num_batched_tokens + 1);
    const std::int64_t n = config.drafter.active() ? config.drafter.num_speculative_tokens : 0;
    config.workload.groups.clear();
    for (std::int64_t g = between(1, 3); g > 0; --g) {
      const std::int64_t b = l.max_num_batched_tokens;
      std::int64_t prompt = one_of({1, 2, 3, n + 1, n + 2, 2 * n + 1, 2 * n + 2, b - 1, b, b + 1,
                                    between(1, longest), longest, longest - 1});
      prompt = std::clamp<std::int64_t>(prompt, 1, longest);
      config.workload.groups.push_back(
          {between(1, 4), prompt, between(0, 6), between(0, 5), "class" + std::to_string(g)});
    }
  }
  /// From just enough for one request of max_model_len to comfortable.
  std::int64_t pool(const scenario::Resolved& config) {
    const Dims dims = make_dims(config);
    std::vector<Kind> kinds;
    for (std::int64_t id = 0; id < dims.layers + dims.draft_layers; ++id)
      kinds.push_back(kind_of_ratio(scenario::effective_ratio(config.model, id)));
    const auto modules = cache_modules(dims, kinds);
    const KvPlan plan = plan_kv_cache(dims, modules, group_caches(modules), std::int64_t{1} << 50);
    const std::int64_t blocks = plan.blocks_per_request * one_of({1, 1, 2, 3}) + between(0, 8);
    return blocks * plan.block_stride;
  }
  std::mt19937_64 random_;
};

}  // namespace warmgate::engine::test
