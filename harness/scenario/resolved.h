// What one rank of one run is: plain values, no YAML. All that engine/ links of scenario/.
// Every field is part of a run's identity (see identity.h).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace warmgate::scenario {

inline constexpr const char* kResolvedSchema = "resolved/1.0";

/// Model constants, named as in the published config.json of the DeepSeek-V4 family.
struct Model {
  std::string name;
  std::int64_t hidden_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 1;
  std::int64_t head_dim = 512;  // NoPE + RoPE
  std::int64_t qk_rope_head_dim = 64;
  std::int64_t q_lora_rank = 0;
  std::int64_t o_groups = 0;
  std::int64_t o_lora_rank = 0;
  std::int64_t sliding_window = 128;
  std::int64_t index_n_heads = 64;
  std::int64_t index_head_dim = 128;
  std::int64_t index_topk = 512;
  double rope_theta = 10000;
  double compress_rope_theta = 160000;
  double rope_factor = 16;  // YaRN
  std::int64_t original_max_position_embeddings = 65536;
  double beta_fast = 32;
  double beta_slow = 1;
  std::int64_t max_position_embeddings = 1048576;
  double rms_norm_eps = 1e-6;
  std::int64_t vocab_size = 129280;
  std::int64_t n_routed_experts = 0;
  std::int64_t num_experts_per_tok = 0;
  std::int64_t n_shared_experts = 0;
  std::int64_t moe_intermediate_size = 0;
  double routed_scaling_factor = 1;
  std::int64_t num_hash_layers = 0;
  std::int64_t hc_mult = 4;
  std::int64_t hc_sinkhorn_iters = 20;
  double hc_eps = 1e-6;
  double swiglu_limit = 10;
  std::string expert_dtype = "fp4";         // fp4 | fp8 | bf16
  std::string dense_dtype = "fp8";          // fp8 | bf16
  std::string indexer_cache_dtype = "fp8";  // fp8 | fp4
  std::int64_t num_nextn_predict_layers = 0;
  /// As in the config: one entry per target layer plus trailing ones for draft layers; 0 and 1 both
  /// mean uncompressed. Read it through effective_ratio() only.
  std::vector<std::int64_t> compress_ratios;
};

/// max(1, compress_ratios[layer_id]) for target layers, 1 for draft layers and beyond the list.
std::int64_t effective_ratio(const Model& model, std::int64_t layer_id);

struct Limits {
  std::int64_t max_model_len = 0;           // L
  std::int64_t max_num_batched_tokens = 0;  // B
  std::int64_t max_num_seqs = 0;            // S
  std::int64_t device_memory_bytes = 0;
  double gpu_memory_utilization = 0.9;
  std::optional<std::int64_t> kv_pool_bytes;  // replaces the sizing; the profile run stays
  bool async_scheduling = true;               // two batches in flight
};

struct Parallel {
  std::int64_t tp = 1;
};

struct Drafter {
  std::string method = "none";              // none | dspark | mtp
  std::int64_t num_speculative_tokens = 0;  // N
  std::int64_t block_size = 0;              // trained block length; N must be >= it
  std::int64_t layers = 0;                  // draft decoder layers, ids after the target's
  std::int64_t markov_rank = 0;
  std::int64_t noise_token_id = 0;
  std::vector<std::int64_t> target_layer_ids;
  std::string topk_indices_buffer = "own";  // own | absent
  bool active() const { return method != "none"; }
  bool parallel_drafting() const { return method == "dspark"; }
};

struct RequestGroup {
  std::int64_t count = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t start_step = 0;  // serve step at which the group arrives
  std::string request_class = "greedy";
};

struct Workload {
  std::vector<RequestGroup> groups;
};

/// How closely the engine compares its own work with the float64 oracles, on devices that execute.
/// Not part of a run's identity: what runs is the same.
struct Checks {
  std::string numerics = "sampled";     // off | sampled: some rows of some steps | all
  std::string rope_reference = "yarn";  // yarn | plain: the right table of window-only layers
};

struct Resolved {
  std::string language = "1";
  Model model;
  Limits limits;
  Parallel parallel;
  Drafter drafter;
  Workload workload;
  std::string device = "meta";
  std::vector<std::string> architectures;    // sm_80, sm_90a, ...; the first is the engine's own
  std::map<std::string, std::string> seams;  // every seam of seams.h, with its value
  std::int64_t seed = 0;
  bool probe_keys = false;
  Checks checks;
  std::int64_t collective_deadline_ms = 10000;
};

/// Throws std::runtime_error naming the field that is missing or of another type.
Resolved resolved_from_json(const nlohmann::json& document);
/// Starts with `schema: resolved/1.0`.
nlohmann::json to_json(const Resolved& resolved);

}  // namespace warmgate::scenario
