// Hybrids: layers with a state (Mamba) between layers with attention.
#include <fmt/format.h>

#include "harness/plan/shrink/family_parts.h"
#include "harness/scenario/problems.h"

namespace warmgate::plan::shrink {
namespace {

// A Nemotron-H layer is a mixer or a feed-forward part, never both
// (nvidia/Nemotron-H, configuration_nemotron_h; vllm, models/nemotron_h.py).
Kind nemotron_kind(const std::string& word) {
  if (word == "mamba") return {"mamba2", ""};
  if (word == "attention") return {"full_attention", ""};
  return {"", word};  // mlp, moe
}

std::string letter_word(char letter) {
  switch (letter) {
    case 'M':
      return "mamba";
    case '*':
      return "attention";
    case '-':
      return "mlp";
    case 'E':
      return "moe";
    default:
      return "";
  }
}

const std::vector<std::string> kBlocks = {"mamba", "attention", "mlp", "moe"};

std::vector<std::string> pattern_words(Reader& reader, Structure& s, const std::string& key,
                                       std::int64_t layers) {
  const std::string pattern = reader.word(key, "");
  s.pattern = key;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    out.push_back(letter_word(pattern[i]));
    if (out.back().empty())
      reader.complain(
          fmt::format("{}[{}]", key, i),
          fmt::format("is {}; known are M, *, - and E", scenario::shown(pattern.substr(i, 1))));
  }
  if (static_cast<std::int64_t>(pattern.size()) != layers)
    reader.complain(key,
                    fmt::format("has {} letters; num_hidden_layers is {}", pattern.size(), layers));
  return out;
}

}  // namespace

void read_nemotron_h(Reader& reader, Structure& s) {
  const std::int64_t layers = layer_count(reader);
  if (reader.has("n_routed_experts"))
    s.experts = experts_of(reader, "n_routed_experts", "num_experts_per_tok");
  reader.know("num_experts_per_tok");
  const std::int64_t groups = reader.maybe("n_group", 1, kMostExperts).value_or(1);
  const std::int64_t chosen = reader.maybe("topk_group", 1, kMostExperts).value_or(groups);
  if (s.experts.count % groups != 0)
    reader.complain("n_group", fmt::format("{} does not divide {}", groups, s.experts.count));
  s.experts.groups = groups;
  s.experts.top_k_groups = chosen;
  const bool pattern = reader.has("hybrid_override_pattern");
  const auto listed = layer_words(reader, s, "layers_block_type", layers, kBlocks);
  std::vector<std::string> words = listed;
  if (pattern) words = pattern_words(reader, s, "hybrid_override_pattern", layers);
  if (pattern && !listed.empty() && words != listed)
    reader.complain("layers_block_type", "says other than hybrid_override_pattern");
  if (words.empty()) reader.complain("hybrid_override_pattern", "is missing");
  for (const std::string& word : words) s.target.push_back(nemotron_kind(word));
  const std::int64_t drafts = reader.maybe("num_nextn_predict_layers", 0, kMostLayers).value_or(0);
  for (const std::string& word : reader.words("mtp_layers_block_type"))
    s.draft.push_back(nemotron_kind(word));
  for (const char letter : reader.word("mtp_hybrid_override_pattern", ""))
    s.draft.push_back(nemotron_kind(letter_word(letter)));
  if (drafts > 0 && s.draft.empty())
    reader.complain("mtp_layers_block_type", "is missing; num_nextn_predict_layers is not 0");
  if (drafts == 0) s.draft.clear();
}

void weigh_nemotron_h(Reader& reader, const Structure& s, WeightList& weights) {
  weigh_embeddings(reader, weights);
  const std::int64_t hidden = reader.whole("hidden_size");
  const std::int64_t heads = reader.whole("mamba_num_heads");
  const std::int64_t inner = heads * reader.whole("mamba_head_dim");
  const std::int64_t states = 2 * reader.whole("n_groups") * reader.whole("ssm_state_size");
  const std::int64_t mamba = count_mixer(s, "mamba2");
  weights.add("mamba in", mamba, {hidden, 2 * inner + states + heads}, Stored::kDense,
              weights.tp());
  weights.add("mamba convolution", mamba, {inner + states, reader.whole("conv_kernel", 1, 64)},
              Stored::kPlain, weights.tp());
  weights.add("mamba out", mamba, {inner, hidden}, Stored::kDense, weights.tp());
  weigh_attention(reader, count_mixer(s, "full_attention"), weights);
  weigh_mlp(reader, count_ffn(s, "mlp"), weights, 2);
  const auto width = reader.maybe("moe_intermediate_size");
  const auto shared = reader.maybe("moe_shared_expert_intermediate_size", 0);
  const std::int64_t shared_count = reader.maybe("n_shared_experts", 0, kMostExperts).value_or(0);
  if (const std::int64_t moe = count_ffn(s, "moe"); moe > 0) {
    if (!width) reader.complain("moe_intermediate_size", "is missing");
    weigh_experts(reader, s, moe, width.value_or(0), shared_count * shared.value_or(0), weights, 2);
  }
}

void read_jamba(Reader& reader, Structure& s) {
  const std::int64_t layers = layer_count(reader);
  s.experts = experts_of(reader, "num_experts", "num_experts_per_tok");
  // transformers, configuration_jamba: attention and experts at offset, offset + period, …
  const auto at = [&](const std::string& name, std::int64_t every_default,
                      std::int64_t offset_default) {
    const std::int64_t every = period(reader, s, name + "_period", every_default);
    if (!reader.has(name + "_period")) s.periods.push_back(name + "_period");
    const std::int64_t offset =
        reader.maybe(name + "_offset", 0, kMostLayers).value_or(offset_default);
    if (offset >= every)
      reader.complain(name + "_offset",
                      fmt::format("expected less than {}_period, {}", name, every));
    return [every, offset](std::int64_t id) { return id % every == offset; };
  };
  const auto attention = at("attn_layer", 8, 4), experts = at("expert_layer", 2, 1);
  const auto listed = layer_words(reader, s, "layers_block_type", layers, {"attention", "mamba"});
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool attends = attention(i);
    if (!listed.empty() && (listed[static_cast<std::size_t>(i)] == "attention") != attends)
      reader.complain("layers_block_type",
                      "says other than attn_layer_period and attn_layer_offset");
    s.target.push_back(
        {attends ? "full_attention" : "mamba1", experts(i) && s.experts.count > 1 ? "moe" : "mlp"});
  }
}

void weigh_jamba(Reader& reader, const Structure& s, WeightList& weights) {
  weigh_embeddings(reader, weights);
  const std::int64_t hidden = reader.whole("hidden_size");
  const std::int64_t inner = reader.whole("mamba_expand", 1, 64) * hidden;
  const std::int64_t state = reader.whole("mamba_d_state");
  std::int64_t rank = (hidden + 15) / 16;  // "auto"
  if (!reader.has("mamba_dt_rank") || reader.config().at("mamba_dt_rank") != Json("auto"))
    rank = reader.maybe("mamba_dt_rank").value_or(rank);
  reader.know("mamba_dt_rank");
  const std::int64_t mamba = count_mixer(s, "mamba1");
  weights.add("mamba in", mamba, {hidden, 2 * inner}, Stored::kDense, weights.tp());
  weights.add("mamba convolution", mamba, {inner, reader.whole("mamba_d_conv", 1, 64)},
              Stored::kPlain, weights.tp());
  weights.add("mamba state (x, dt, A)", mamba, {inner, 2 * rank + 3 * state}, Stored::kPlain,
              weights.tp());
  weights.add("mamba out", mamba, {inner, hidden}, Stored::kDense, weights.tp());
  weigh_attention(reader, count_mixer(s, "full_attention"), weights);
  weigh_mlp(reader, count_ffn(s, "mlp"), weights);
  if (const std::int64_t moe = count_ffn(s, "moe"); moe > 0)
    weigh_experts(reader, s, moe, reader.whole("intermediate_size"), 0, weights);
}

}  // namespace warmgate::plan::shrink
