// Configs for the tests: those in fixtures/configs, and random ones of every family.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "harness/plan/shrink/family.h"
#include "harness/plan/shrink/shrink.h"
#include "harness/plan/shrink/tokenizer.h"

namespace warmgate::plan::shrink {

inline std::string fixture_text(const std::string& name) {
  const char* root = std::getenv("WARMGATE_SOURCE_DIR");
  std::ifstream in(std::string(root ? root : ".") + "/fixtures/configs/" + name + ".json");
  return {std::istreambuf_iterator<char>(in), {}};
}

inline const std::vector<std::string>& fixture_names() {
  static const std::vector<std::string> names = {
      "deepseek-v4-flash", "deepseek-v4-flash-0731",  "deepseek-v3",
      "llama-3.1-8b",      "qwen3-30b-a3b",           "qwen3-next-80b-a3b",
      "jamba-1.5-mini",    "nemotron-3-nano-30b-a3b", "gpt-oss-20b"};
  return names;
}

inline Json fixture(const std::string& name) {
  Complaints complaints(name);
  Json out = parse_config(fixture_text(name), complaints);
  complaints.throw_if_any();
  return out;
}

inline Result shrunk(const Json& config, const Request& request = {}) {
  return shrink_text(config_text(config), "config.json", request);
}

/// The problems of a config as text, "" if it is taken.
inline std::string problems_of(const std::string& text, const Request& request = {}) {
  try {
    shrink_text(text, "config.json", request);
  } catch (const scenario::ScenarioError& error) {
    std::string out;
    for (const auto& problem : error.problems()) out += problem.text() + "\n";
    return out;
  }
  return "";
}

/// A fixture with layers, experts, lists and taps drawn at random; always one that a reader takes.
class RandomConfig {
 public:
  explicit RandomConfig(std::uint32_t seed) : random_(seed) {}
  Json next(const std::string& name);

 private:
  std::int64_t draw(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  bool coin() { return draw(0, 1) == 1; }
  std::vector<std::int64_t> ids(std::int64_t below, std::int64_t most);
  void experts(Json& config, const std::string& key, const std::string& top_k);
  std::mt19937 random_;
};

inline std::vector<std::int64_t> RandomConfig::ids(std::int64_t below, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t id = 0; id < below && static_cast<std::int64_t>(out.size()) < most; ++id) {
    if (draw(0, 3) == 0) out.push_back(id);
  }
  return out;
}

inline void RandomConfig::experts(Json& config, const std::string& key, const std::string& top_k) {
  const std::int64_t count = draw(1, 6) * (std::int64_t{1} << draw(2, 6));
  config[key] = count;
  config[top_k] = draw(1, std::min<std::int64_t>(count, 12));
}

inline Json RandomConfig::next(const std::string& name) {
  Json c = fixture(name);
  const std::string type = c.at("model_type");
  const std::int64_t layers = draw(1, 40);
  c["num_hidden_layers"] = layers;
  const auto words = [&](std::vector<std::string> of) {
    Json out = Json::array();
    for (std::int64_t i = 0; i < layers; ++i)
      out.push_back(
          of[static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(of.size()) - 1))]);
    return out;
  };
  if (type == "deepseek_v4") {
    experts(c, "n_routed_experts", "num_experts_per_tok");
    c["num_hash_layers"] = draw(0, std::min<std::int64_t>(5, layers));
    const bool dspark = c.contains("dspark_target_layer_ids");
    if (dspark) {
      auto taps = ids(layers, 4);
      if (taps.empty()) taps = {layers - 1};
      c["dspark_target_layer_ids"] = taps;
      c["n_mtp_layers"] = draw(1, 4);
    }
    const std::int64_t drafts = dspark ? c["n_mtp_layers"].get<std::int64_t>() : 1;
    const std::vector<std::int64_t> ratios = {0, 1, 4, 128};
    Json list = Json::array();
    for (std::int64_t i = 0; i < layers + drafts; ++i)
      list.push_back(i < layers ? ratios[static_cast<std::size_t>(draw(0, 3))] : 0);
    c["compress_ratios"] = list;
  } else if (type == "deepseek_v3") {
    c["n_group"] = std::int64_t{1} << draw(0, 3);
    c["topk_group"] = draw(1, c["n_group"].get<std::int64_t>());
    c["n_routed_experts"] = 64 * draw(1, 6);
    c["num_experts_per_tok"] = draw(1, 8);
    c["first_k_dense_replace"] = draw(0, layers);
    c["moe_layer_freq"] = draw(1, 3);
  } else if (type == "llama") {
    if (coin()) {
      c["layer_types"] = words({"full_attention", "sliding_attention"});
      c["sliding_window"] = 4096;
    }
  } else if (type == "qwen3_moe") {
    experts(c, "num_experts", "num_experts_per_tok");
    c["mlp_only_layers"] = ids(layers, 8);
    c["decoder_sparse_step"] = draw(1, 3);
    c["max_window_layers"] = draw(0, layers + 4);
    if (coin()) c["use_sliding_window"] = true, c["sliding_window"] = 4096;
  } else if (type == "qwen3_next") {
    experts(c, "num_experts", "num_experts_per_tok");
    c["full_attention_interval"] = draw(1, 6);
    if (coin()) {
      c.erase("full_attention_interval");
      c["layer_types"] = words({"full_attention", "linear_attention"});
    }
  } else if (type == "jamba") {
    experts(c, "num_experts", "num_experts_per_tok");
    c["attn_layer_period"] = draw(1, 9);
    c["attn_layer_offset"] = draw(0, c["attn_layer_period"].get<std::int64_t>() - 1);
    c["expert_layer_period"] = draw(1, 4);
    c["expert_layer_offset"] = draw(0, c["expert_layer_period"].get<std::int64_t>() - 1);
  } else if (type == "nemotron_h") {
    experts(c, "n_routed_experts", "num_experts_per_tok");
    std::string pattern;
    for (std::int64_t i = 0; i < layers; ++i) pattern += "M*-E"[draw(0, 3)];
    c["hybrid_override_pattern"] = pattern;
  } else if (type == "gpt_oss") {
    experts(c, "num_local_experts", "num_experts_per_tok");
    c.erase("experts_per_token");
    c["layer_types"] = words({"full_attention", "sliding_attention"});
  }
  if (!c.contains("dspark_target_layer_ids") && coin())
    c["eagle_aux_hidden_state_layer_ids"] = ids(layers, 3);
  return c;
}

}  // namespace warmgate::plan::shrink
