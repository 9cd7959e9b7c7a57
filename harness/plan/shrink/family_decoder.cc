// Llama, Mistral, Qwen 2 and 3, Gemma 3 and the models with experts that are built like them.
#include "harness/plan/shrink/family_parts.h"

#include <algorithm>

namespace warmgate::plan::shrink {
namespace {

// transformers, modeling_qwen3_moe: a layer has experts unless it is listed, at every n-th layer.
std::vector<std::string> qwen_ffns(Reader& reader, Structure& structure, std::int64_t layers) {
  const std::int64_t step = period(reader, structure, "decoder_sparse_step", 1);
  const auto dense = layer_ids(reader, structure, "mlp_only_layers", layers);
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool listed = std::find(dense.begin(), dense.end(), i) != dense.end();
    out.push_back(!listed && structure.experts.count > 0 && (i + 1) % step == 0 ? "moe" : "mlp");
  }
  return out;
}

std::vector<std::string> all(const char* what, std::int64_t layers) {
  return std::vector<std::string>(static_cast<std::size_t>(layers), what);
}

}  // namespace

void read_decoder(Reader& reader, Structure& s) {
  const std::int64_t layers = layer_count(reader);
  set_layers(s, windowed_mixers(reader, s, layers), all("mlp", layers));
}

void weigh_decoder(Reader& reader, const Structure& s, WeightList& weights) {
  weigh_embeddings(reader, weights);
  weigh_attention(reader, s.layers(), weights);
  weigh_mlp(reader, s.layers(), weights);
}

void read_qwen_moe(Reader& reader, Structure& s) {
  const std::int64_t layers = layer_count(reader);
  s.experts = experts_of(reader, "num_experts", "num_experts_per_tok");
  const auto mixers = windowed_mixers(reader, s, layers);
  set_layers(s, mixers, qwen_ffns(reader, s, layers));
}

void weigh_qwen_moe(Reader& reader, const Structure& s, WeightList& weights) {
  weigh_embeddings(reader, weights);
  weigh_attention(reader, s.layers(), weights);
  weigh_mlp(reader, count_ffn(s, "mlp"), weights);
  const std::int64_t shared = reader.maybe("shared_expert_intermediate_size", 0).value_or(0);
  if (count_ffn(s, "moe") > 0)
    weigh_experts(reader, s, count_ffn(s, "moe"), reader.whole("moe_intermediate_size"), shared,
                  weights);
}

void read_mixtral(Reader& reader, Structure& s) {
  const std::int64_t layers = layer_count(reader);
  s.experts = experts_of(reader, "num_local_experts", "num_experts_per_tok");
  set_layers(s, windowed_mixers(reader, s, layers), all("moe", layers));
}

void weigh_mixtral(Reader& reader, const Structure& s, WeightList& weights) {
  weigh_embeddings(reader, weights);
  weigh_attention(reader, s.layers(), weights);
  weigh_experts(reader, s, s.layers(), reader.whole("intermediate_size"), 0, weights);
}

void read_gpt_oss(Reader& reader, Structure& s) {
  const std::int64_t layers = layer_count(reader);
  // Older files say experts_per_token, later ones both.
  const char* top_k =
      reader.has("num_experts_per_tok") ? "num_experts_per_tok" : "experts_per_token";
  reader.know("experts_per_token");
  s.experts = experts_of(reader, "num_local_experts", top_k);
  if (!reader.has("layer_types")) reader.complain("layer_types", "is missing");
  set_layers(s, windowed_mixers(reader, s, layers), all("moe", layers));
}

void read_qwen3_next(Reader& reader, Structure& s) {
  const std::int64_t layers = layer_count(reader);
  s.experts = experts_of(reader, "num_experts", "num_experts_per_tok");
  // transformers, configuration_qwen3_next: every n-th layer has attention, the others a
  // recurrence.
  std::vector<std::string> mixers;
  const bool listed = reader.has("layer_types");
  const std::int64_t every = period(reader, s, "full_attention_interval", listed ? 1 : 4);
  if (!listed && !reader.has("full_attention_interval"))
    s.periods.push_back("full_attention_interval");
  for (std::int64_t i = 0; i < layers; ++i)
    mixers.push_back((i + 1) % every == 0 ? "full_attention" : "linear_attention");
  const auto words =
      layer_words(reader, s, "layer_types", layers, {"full_attention", "linear_attention"});
  if (listed && reader.has("full_attention_interval") && words != mixers)
    reader.complain("layer_types", "says other than full_attention_interval");
  reader.know("use_sliding_window");
  reader.know("sliding_window");
  reader.know("max_window_layers");
  const auto chosen = listed ? words : mixers;
  set_layers(s, chosen, qwen_ffns(reader, s, layers));
}

void weigh_qwen3_next(Reader& reader, const Structure& s, WeightList& weights) {
  weigh_embeddings(reader, weights);
  weigh_attention(reader, count_mixer(s, "full_attention"), weights, 2);
  const std::int64_t hidden = reader.whole("hidden_size");
  const std::int64_t keys =
      reader.whole("linear_num_key_heads") * reader.whole("linear_key_head_dim");
  const std::int64_t value_heads = reader.whole("linear_num_value_heads");
  const std::int64_t values = value_heads * reader.whole("linear_value_head_dim");
  const std::int64_t linear = count_mixer(s, "linear_attention");
  weights.add("recurrence in (q, k, v, z, b, a)", linear,
              {hidden, 2 * keys + 2 * values + 2 * value_heads}, Stored::kDense, weights.tp());
  weights.add("recurrence convolution", linear,
              {2 * keys + values, reader.whole("linear_conv_kernel_dim")}, Stored::kPlain,
              weights.tp());
  weights.add("recurrence out", linear, {values, hidden}, Stored::kDense, weights.tp());
  weigh_mlp(reader, count_ffn(s, "mlp"), weights);
  const std::int64_t shared = reader.maybe("shared_expert_intermediate_size", 0).value_or(0);
  if (count_ffn(s, "moe") > 0)
    weigh_experts(reader, s, count_ffn(s, "moe"), reader.whole("moe_intermediate_size"), shared,
                  weights);
}

}  // namespace warmgate::plan::shrink
