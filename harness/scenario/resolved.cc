#include "harness/scenario/resolved.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace nlohmann {
template <typename T>
struct adl_serializer<std::optional<T>> {
  static void to_json(json& j, const std::optional<T>& value) { value ? j = *value : j = nullptr; }
  static void from_json(const json& j, std::optional<T>& value) {
    if (j.is_null())
      value.reset();
    else
      value = j.get<T>();
  }
};
}  // namespace nlohmann

namespace warmgate::scenario {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    Model, name, hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim,
    qk_rope_head_dim, q_lora_rank, o_groups, o_lora_rank, sliding_window, index_n_heads,
    index_head_dim, index_topk, rope_theta, compress_rope_theta, rope_factor,
    original_max_position_embeddings, beta_fast, beta_slow, max_position_embeddings, rms_norm_eps,
    vocab_size, n_routed_experts, num_experts_per_tok, n_shared_experts, moe_intermediate_size,
    routed_scaling_factor, num_hash_layers, hc_mult, hc_sinkhorn_iters, hc_eps, swiglu_limit,
    expert_dtype, dense_dtype, indexer_cache_dtype, num_nextn_predict_layers, compress_ratios)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Limits, max_model_len, max_num_batched_tokens, max_num_seqs,
                                   device_memory_bytes, gpu_memory_utilization, kv_pool_bytes,
                                   async_scheduling)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Parallel, tp)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Drafter, method, num_speculative_tokens, block_size, layers,
                                   markov_rank, noise_token_id, target_layer_ids,
                                   topk_indices_buffer)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RequestGroup, count, prompt_tokens, output_tokens, start_step,
                                   request_class)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Workload, groups)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Checks, numerics, rope_reference)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resolved, language, model, limits, parallel, drafter, workload,
                                   device, architectures, seams, seed, probe_keys, checks,
                                   collective_deadline_ms)

std::int64_t effective_ratio(const Model& model, std::int64_t layer_id) {
  const auto size = static_cast<std::int64_t>(model.compress_ratios.size());
  if (layer_id < 0 || layer_id >= model.num_hidden_layers || layer_id >= size) return 1;
  return std::max<std::int64_t>(1, model.compress_ratios[static_cast<std::size_t>(layer_id)]);
}

Resolved resolved_from_json(const nlohmann::json& document) {
  const std::string schema = document.value("schema", "");
  if (schema.rfind("resolved/1.", 0) != 0) {
    throw std::runtime_error("schema is '" + schema + "'; this program reads " + kResolvedSchema);
  }
  try {
    return document.get<Resolved>();
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(std::string("resolved scenario: ") + error.what());
  }
}

nlohmann::json to_json(const Resolved& resolved) {
  nlohmann::json document;
  to_json(document, resolved);
  document["schema"] = kResolvedSchema;
  return document;
}

}  // namespace warmgate::scenario
