// DeepSeek V2, V3, V3.2, V4 and what is built like them.
#include <fmt/format.h>

#include "harness/plan/shrink/family_parts.h"

namespace warmgate::plan::shrink {
namespace {

// transformers, modeling_deepseek_v3: dense first layers, then experts at every n-th layer. Draft
// layers follow the same rule with the ids after the target's (vllm, models/deepseek_mtp.py).
void read_deepseek_layers(Reader& reader, Structure& s, const char* mixer, std::int64_t layers) {
  const std::int64_t dense = boundary(reader, s, "first_k_dense_replace", 0, kMostLayers);
  const std::int64_t every = period(reader, s, "moe_layer_freq", 1);
  const std::int64_t drafts = reader.maybe("num_nextn_predict_layers", 0, kMostLayers).value_or(0);
  for (std::int64_t i = 0; i < layers + drafts; ++i) {
    const bool moe = s.experts.count > 0 && i >= dense && i % every == 0;
    (i < layers ? s.target : s.draft).push_back({mixer, moe ? "moe" : "mlp"});
  }
}

void read_groups(Reader& reader, Structure& s) {
  const std::int64_t groups = reader.maybe("n_group", 1, kMostExperts).value_or(1);
  const std::int64_t chosen = reader.maybe("topk_group", 0, kMostExperts).value_or(groups);
  if (s.experts.count == 0) return;
  if (s.experts.count % groups != 0)
    reader.complain(
        "n_group", fmt::format("{} does not divide {} {}", groups, s.experts.key, s.experts.count));
  if (groups > 1 && (chosen < 1 || chosen > groups))
    reader.complain("topk_group", fmt::format("expected 1 to {} (n_group)", groups));
  s.experts.groups = groups;
  s.experts.top_k_groups = groups > 1 ? chosen : 1;
}

std::int64_t shared_width(Reader& reader) {
  return reader.maybe("n_shared_experts", 0, kMostExperts).value_or(0) *
         reader.maybe("moe_intermediate_size").value_or(0);
}

void weigh_deepseek_ffn(Reader& reader, const Structure& s, WeightList& weights) {
  weigh_mlp(reader, count_ffn(s, "mlp"), weights);
  const std::int64_t moe = count_ffn(s, "moe") + count_ffn(s, "hash_moe");
  if (moe > 0)
    weigh_experts(reader, s, moe, reader.whole("moe_intermediate_size"), shared_width(reader),
                  weights);
}

}  // namespace

void read_deepseek(Reader& reader, Structure& s) {
  const std::int64_t layers = layer_count(reader);
  if (reader.has("n_routed_experts"))
    s.experts = experts_of(reader, "n_routed_experts", "num_experts_per_tok");
  reader.know("num_experts_per_tok");
  read_groups(reader, s);
  const char* mixer = reader.has("index_topk") ? "mla_indexed" : "mla";
  read_deepseek_layers(reader, s, mixer, layers);
}

void weigh_deepseek(Reader& reader, const Structure& s, WeightList& weights) {
  weigh_embeddings(reader, weights);
  const std::int64_t layers = s.layers() + static_cast<std::int64_t>(s.draft.size());
  const std::int64_t hidden = reader.whole("hidden_size"),
                     heads = reader.whole("num_attention_heads");
  reader.maybe("num_key_value_heads");
  reader.maybe("head_dim");
  const std::int64_t rope = reader.whole("qk_rope_head_dim"),
                     nope = reader.whole("qk_nope_head_dim");
  const std::int64_t value = reader.whole("v_head_dim"), latent = reader.whole("kv_lora_rank");
  const std::int64_t query = reader.maybe("q_lora_rank").value_or(0);
  if (query > 0) {
    weights.add("attention q down, kv down", layers, {hidden, query + latent + rope},
                Stored::kDense, 1);
    weights.add("attention q up", layers, {query, heads * (nope + rope)}, Stored::kDense,
                weights.tp());
  } else {
    weights.add("attention q", layers, {hidden, heads * (nope + rope)}, Stored::kDense,
                weights.tp());
    weights.add("attention kv down", layers, {hidden, latent + rope}, Stored::kDense, 1);
  }
  weights.add("attention kv up, o", layers, {heads, latent * (nope + value) + value * hidden},
              Stored::kDense, weights.tp());
  if (count_mixer(s, "mla_indexed") > 0) {
    // vllm, models/deepseek_v2 Indexer: all of it on every rank.
    const std::int64_t index = reader.whole("index_n_heads") * reader.whole("index_head_dim");
    reader.whole("index_topk");
    weights.add("indexer", layers,
                {1, query * index +
                        hidden * (reader.whole("index_head_dim") + reader.whole("index_n_heads"))},
                Stored::kDense, 1);
  }
  weigh_deepseek_ffn(reader, s, weights);
  weights.add("draft input projection", static_cast<std::int64_t>(s.draft.size()),
              {2, hidden, hidden}, Stored::kPlain, 1);
}

void read_glm4_moe(Reader& reader, Structure& s) {
  const std::int64_t layers = layer_count(reader);
  s.experts = experts_of(reader, "n_routed_experts", "num_experts_per_tok");
  read_groups(reader, s);
  read_deepseek_layers(reader, s, "full_attention", layers);
}

void weigh_glm4_moe(Reader& reader, const Structure& s, WeightList& weights) {
  weigh_embeddings(reader, weights);
  weigh_attention(reader, count_mixer(s, "full_attention"), weights);
  weigh_deepseek_ffn(reader, s, weights);
  const std::int64_t hidden = reader.whole("hidden_size");
  weights.add("draft input projection", static_cast<std::int64_t>(s.draft.size()),
              {2, hidden, hidden}, Stored::kPlain, 1);
}

namespace {

// vllm at d40c3e3c00, models/deepseek_v4/attention.py: 0 and 1 both mean uncompressed. They stay
// two kinds here: code that reads the list itself has taken 0 for a divisor
// (vllm-project/vllm#49392).
std::string v4_mixer(Reader& reader, std::size_t id, std::int64_t ratio, bool draft) {
  if (draft || ratio == 0 || ratio == 1) return fmt::format("swa_ratio{}", ratio);
  if (ratio == 4) return "c4a";
  if (ratio == 128) return "c128a";
  reader.complain(fmt::format("compress_ratios[{}]", id),
                  fmt::format("is {}; known are 0, 1, 4 and 128", ratio));
  return "swa_ratio1";
}

std::int64_t v4_drafts(Reader& reader) {
  const std::int64_t nextn = reader.maybe("num_nextn_predict_layers", 0, kMostLayers).value_or(0);
  const auto stated = reader.maybe("n_mtp_layers", 0, kMostLayers);
  // vllm, models/deepseek_v4/nvidia/dspark.py: n_mtp_layers, else 3.
  if (reader.has("dspark_target_layer_ids")) return stated.value_or(3) > 0 ? stated.value_or(3) : 3;
  return stated.value_or(nextn);
}

}  // namespace

void read_deepseek_v4(Reader& reader, Structure& s) {
  const std::int64_t layers = layer_count(reader);
  s.experts = experts_of(reader, "n_routed_experts", "num_experts_per_tok");
  read_groups(reader, s);
  const auto ratios = reader.numbers("compress_ratios", 0, kMostWidth);
  s.lists.push_back("compress_ratios");
  const std::int64_t hashed = boundary(reader, s, "num_hash_layers", 0, layers);
  const std::int64_t dense = boundary(reader, s, "first_k_dense_replace", 0, kMostLayers);
  if (dense > 0)
    reader.complain("first_k_dense_replace", "is not 0; DeepSeek-V4 has no dense layers");
  const std::int64_t drafts = v4_drafts(reader);
  const auto given = static_cast<std::int64_t>(ratios.size());
  if (given != layers && given != layers + drafts) {
    reader.complain("compress_ratios",
                    fmt::format("has {} entries; num_hidden_layers {} and {} draft layers make {}",
                                given, layers, drafts, layers + drafts));
    return;
  }
  for (std::int64_t i = 0; i < layers + drafts; ++i) {
    const bool draft = i >= layers;
    const std::int64_t ratio = i < given ? ratios[static_cast<std::size_t>(i)] : 0;
    const Kind kind{v4_mixer(reader, static_cast<std::size_t>(i), ratio, draft),
                    i < hashed && !draft ? "hash_moe" : "moe"};
    (draft ? s.draft : s.target).push_back(kind);
  }
}

// Shapes: vllm at d40c3e3c00, models/deepseek_v4 attention.py, compressor.py, nvidia/dspark.py;
// hyper-connections and hash tables: transformers, modeling_deepseek_v4.
void weigh_deepseek_v4(Reader& reader, const Structure& s, WeightList& weights) {
  weigh_embeddings(reader, weights);
  const std::int64_t layers = s.layers() + static_cast<std::int64_t>(s.draft.size());
  const std::int64_t hidden = reader.whole("hidden_size"),
                     heads = reader.whole("num_attention_heads");
  const std::int64_t dim = reader.whole("head_dim"), query = reader.whole("q_lora_rank");
  const std::int64_t groups = reader.whole("o_groups"), out_rank = reader.whole("o_lora_rank");
  reader.maybe("num_key_value_heads", 1, 1);
  if (reader.whole("qk_rope_head_dim") > dim)
    reader.complain("qk_rope_head_dim", fmt::format("is more than head_dim {}", dim));
  reader.maybe("kv_lora_rank");
  reader.maybe("sliding_window");
  if (heads % groups != 0)
    reader.complain("o_groups",
                    fmt::format("{} does not divide num_attention_heads {}", groups, heads));
  weights.add("attention q and kv down", layers, {hidden, query + dim}, Stored::kDense, 1);
  weights.add("attention q up", layers, {query, heads * dim}, Stored::kDense, weights.tp());
  weights.add("attention o down", layers, {out_rank, heads * dim}, Stored::kDense, weights.tp());
  weights.add("attention o up", layers, {groups * out_rank, hidden}, Stored::kDense, weights.tp());
  const std::int64_t c4 = count_mixer(s, "c4a"), c128 = count_mixer(s, "c128a");
  weights.add("compressor, ratio 4", c4, {4, dim, hidden + 4}, Stored::kPlain, 1);
  weights.add("compressor, ratio 128", c128, {2, dim, hidden + 128}, Stored::kPlain, 1);
  if (c4 > 0) {
    const std::int64_t index_heads = reader.whole("index_n_heads");
    const std::int64_t index_dim = reader.whole("index_head_dim");
    reader.whole("index_topk");
    weights.add("indexer q", c4, {query, index_heads * index_dim}, Stored::kDense, 1);
    weights.add("indexer weights and compressor", c4, {hidden, index_heads + 4 * index_dim},
                Stored::kPlain, 1);
  } else {
    for (const char* key : {"index_n_heads", "index_head_dim", "index_topk"}) reader.maybe(key);
  }
  weigh_deepseek_ffn(reader, s, weights);
  weights.add("hash routing tables", count_ffn(s, "hash_moe"),
              {reader.whole("vocab_size", 1, kMostVocabulary), s.experts.top_k}, Stored::kInt64, 1);
  const std::int64_t copies = reader.maybe("hc_mult", 1, 64).value_or(1);
  if (copies > 1)
    weights.add("hyper-connections", layers, {2, (2 + copies) * copies, copies * hidden},
                Stored::kFloat32, 1);
  if (s.taps_key != "dspark_target_layer_ids") {
    weights.add("draft input projections", static_cast<std::int64_t>(s.draft.size()),
                {2, hidden, hidden}, Stored::kDense, 1);
    return;
  }
  reader.whole("dspark_block_size", 1, 4096);
  reader.maybe("dspark_noise_token_id", 0, kMostVocabulary);
  weights.add("draft input from the taps", 1,
              {hidden, static_cast<std::int64_t>(s.taps.size()), hidden}, Stored::kDense, 1);
  weights.add(
      "draft Markov head", 1,
      {2, reader.whole("vocab_size", 1, kMostVocabulary), reader.whole("dspark_markov_rank")},
      Stored::kPlain, 1);
}

}  // namespace warmgate::plan::shrink
