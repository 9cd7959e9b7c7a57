// Model and drafter. Names are those of the published config.json of the DeepSeek-V4 family. Upper
// ends keep every product that the engine computes from them inside 63 bits.
#include "harness/scenario/field_makers.h"
#include "harness/scenario/sections.h"

namespace warmgate::scenario {

using namespace makers;

namespace {

Field ratio_field(std::string_view name, std::string_view meaning) {
  Field field = integer(name, meaning, 0, 128);
  field.choices = {"0", "1", "4", "128"};
  return field;
}

}  // namespace

Field model_section() {
  Field ratio = ratio_field("ratio", "compress ratio of the layers: 0 and 1 uncompressed, 4, 128");
  Field layer = object(
      "", "a run of equal layers",
      {required(std::move(ratio)), otherwise(integer("count", "how many of them", 1, 512), "1")});
  Field layers =
      list("layers", "the target's layers, instead of compress_ratios", std::move(layer));
  layers.min_items = 1;
  layers.max_items = 512;
  Field ratios = list("compress_ratios",
                      "one entry per target layer, then any for draft layers; 0, 1, 4 or 128",
                      ratio_field("", ""));
  ratios.min_items = 1;
  ratios.max_items = 520;
  Field model = object(
      "model", "the target model: a preset, changed key by key, or all keys inline",
      {name("preset", "a file of fixtures/models"),
       name("name", "a name for reports"),
       std::move(layers),
       std::move(ratios),
       integer("num_hidden_layers", "target layers", 1, 512),
       integer("hidden_size", "H", 1, 65536),
       integer("num_attention_heads", "query heads over all ranks", 1, 4096),
       integer("num_key_value_heads", "shared KV heads; the modelled attention has one", 1, 1),
       integer("head_dim", "NoPE and RoPE dimensions together", 2, 4096),
       integer("qk_rope_head_dim", "RoPE dimensions, even", 2, 4096),
       integer("q_lora_rank", "rank of the query projection", 1, 65536),
       integer("o_groups", "groups of the output projection; tp may not exceed it", 1, 4096),
       integer("o_lora_rank", "rank of the output projection", 1, 65536),
       integer("sliding_window", "raw tokens a query sees", 1, 65536),
       integer("index_n_heads", "heads of the indexer", 1, 4096),
       integer("index_head_dim", "dimensions of an indexer head", 1, 4096),
       integer("index_topk", "K, compressed entries that the indexer picks", 1, 65536),
       real("rope_theta", "RoPE base of uncompressed layers", 2, 1e9),
       real("compress_rope_theta", "RoPE base of compressed layers", 2, 1e9),
       real("rope_factor", "YaRN factor", 1, 1e6),
       integer("original_max_position_embeddings", "YaRN's original length", 16, 1 << 30),
       real("beta_fast", "YaRN", 1e-9, 1e9),
       real("beta_slow", "YaRN", 1e-9, 1e9),
       integer("max_position_embeddings", "longest context of the model", 1, 1 << 30),
       real("rms_norm_eps", "epsilon of RMSNorm", 0, 1),
       integer("vocab_size", "tokens of the vocabulary", 1, 1 << 24),
       integer("n_routed_experts", "experts; 0 = dense", 0, 4096),
       integer("num_experts_per_tok", "experts chosen per token", 0, 4096),
       integer("n_shared_experts", "experts that always run", 0, 64),
       integer("moe_intermediate_size", "inner width of an expert", 0, 65536),
       real("routed_scaling_factor", "scale of routed experts", 0, 1e6),
       integer("num_hash_layers", "layers routed by hash", 0, 512),
       integer("hc_mult", "hyper-connection copies", 1, 64),
       integer("hc_sinkhorn_iters", "Sinkhorn iterations", 0, 1000),
       real("hc_eps", "epsilon of Sinkhorn", 0, 1),
       real("swiglu_limit", "clamp of SwiGLU", 0, 1e6),
       choice("expert_dtype", "dtype of expert weights", {"fp4", "fp8", "bf16"}),
       choice("dense_dtype", "dtype of dense weights", {"fp8", "bf16"}),
       choice("indexer_cache_dtype", "dtype of the indexer's key cache", {"fp8", "fp4"}),
       integer("num_nextn_predict_layers", "MTP layers of the checkpoint", 0, 64)});
  model.either = {{"layers"}, {"compress_ratios", "num_hidden_layers"}};
  return model;
}

namespace {

std::vector<Field> drafter_constant_fields() {
  Field taps = list("target_layer_ids", "target layers whose outputs feed the drafter",
                    integer("", "", 0, 511));
  taps.max_items = 64;
  return {integer("block_size", "trained block length; num_speculative_tokens is at least this", 1,
                  128),
          integer("layers", "draft decoder layers, ids after the target's", 1, 64),
          integer("markov_rank", "rank of the Markov head", 0, 65536),
          integer("noise_token_id", "token at positions not known yet", 0, (1 << 24) - 1),
          std::move(taps)};
}

}  // namespace

Field drafter_constants() {
  return object("", "constants of one drafting method", drafter_constant_fields());
}

Field topk_indices_buffer() {
  return choice("topk_indices_buffer", "whether the draft model owns a top-k index buffer",
                {"own", "absent"});
}

Field drafter_section() {
  std::vector<Field> fields = {
      choice("method", "how drafts are made", {"none", "dspark", "mtp"}),
      integer("num_speculative_tokens", "N, drafts per step; no default", 1, 128)};
  for (Field& field : drafter_constant_fields()) fields.push_back(std::move(field));
  fields.push_back(topk_indices_buffer());
  return object("drafter", "speculative decoding; constants come from the preset",
                std::move(fields));
}

}  // namespace warmgate::scenario
