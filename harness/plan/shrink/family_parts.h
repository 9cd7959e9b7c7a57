// What several families have in common.
#pragma once

#include "harness/plan/shrink/family.h"

namespace warmgate::plan::shrink {

/// Attention with grouped queries.
struct Attention {
  std::int64_t hidden = 1, heads = 1, kv_heads = 1, head_dim = 1;
};
Attention attention_of(Reader& reader);

/// num_hidden_layers.
std::int64_t layer_count(Reader& reader);
/// `key` as one text a layer, each of `known`; empty if the key is missing. A list of another
/// length is a complaint.
std::vector<std::string> layer_words(Reader& reader, Structure& structure, const std::string& key,
                                     std::int64_t layers, const std::vector<std::string>& known);
/// The mixer of each layer where layers differ by their window: layer_types,
/// sliding_window_pattern, max_window_layers, or a sliding_window for all.
std::vector<std::string> windowed_mixers(Reader& reader, Structure& structure, std::int64_t layers);
/// Routed experts under `count_key` and `top_k_key`. Complains unless 1 <= top-k <= count.
Experts experts_of(Reader& reader, const std::string& count_key, const std::string& top_k_key);
/// A number of first layers, at most `most`.
std::int64_t boundary(Reader& reader, Structure& structure, const std::string& key,
                      std::int64_t otherwise, std::int64_t most);
/// Ids of layers.
std::vector<std::int64_t> layer_ids(Reader& reader, Structure& structure, const std::string& key,
                                    std::int64_t layers);
/// A period of layers: with 1 every layer is alike, and nothing depends on the id.
std::int64_t period(Reader& reader, Structure& structure, const std::string& key,
                    std::int64_t otherwise);
void set_layers(Structure& structure, const std::vector<std::string>& mixers,
                const std::vector<std::string>& ffns);

/// Layers, target and draft, whose mixer or feed-forward part is `name`.
std::int64_t count_mixer(const Structure& structure, std::string_view name);
std::int64_t count_ffn(const Structure& structure, std::string_view name);

void weigh_embeddings(Reader& reader, WeightList& weights);
/// `query_parts`: 2 where the query projection also makes a gate.
void weigh_attention(Reader& reader, std::int64_t layers, WeightList& weights,
                     std::int64_t query_parts = 1);
/// gate, up and down, or up and down alone.
void weigh_mlp(Reader& reader, std::int64_t layers, WeightList& weights, std::int64_t matrices = 3);
/// Router, routed experts of `width`, and shared experts of `shared_width` (0 = none).
void weigh_experts(Reader& reader, const Structure& structure, std::int64_t layers,
                   std::int64_t width, std::int64_t shared_width, WeightList& weights,
                   std::int64_t matrices = 3);

void read_decoder(Reader& reader, Structure& structure);
void weigh_decoder(Reader& reader, const Structure& structure, WeightList& weights);
void read_qwen_moe(Reader& reader, Structure& structure);
void weigh_qwen_moe(Reader& reader, const Structure& structure, WeightList& weights);
void read_mixtral(Reader& reader, Structure& structure);
void weigh_mixtral(Reader& reader, const Structure& structure, WeightList& weights);
void read_gpt_oss(Reader& reader, Structure& structure);
void read_deepseek(Reader& reader, Structure& structure);
void weigh_deepseek(Reader& reader, const Structure& structure, WeightList& weights);
void read_glm4_moe(Reader& reader, Structure& structure);
void weigh_glm4_moe(Reader& reader, const Structure& structure, WeightList& weights);
void read_deepseek_v4(Reader& reader, Structure& structure);
void weigh_deepseek_v4(Reader& reader, const Structure& structure, WeightList& weights);
void read_qwen3_next(Reader& reader, Structure& structure);
void weigh_qwen3_next(Reader& reader, const Structure& structure, WeightList& weights);
void read_nemotron_h(Reader& reader, Structure& structure);
void weigh_nemotron_h(Reader& reader, const Structure& structure, WeightList& weights);
void read_jamba(Reader& reader, Structure& structure);
void weigh_jamba(Reader& reader, const Structure& structure, WeightList& weights);

}  // namespace warmgate::plan::shrink
