// The families without a fixture: that their kinds of layers are told apart and kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/plan/shrink/testing.h"

namespace warmgate::plan::shrink {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Json dense(const std::string& type, std::int64_t layers) {
  return {{"model_type", type},          {"hidden_size", 512},  {"num_attention_heads", 8},
          {"num_key_value_heads", 2},    {"head_dim", 64},      {"intermediate_size", 1024},
          {"num_hidden_layers", layers}, {"vocab_size", 1000},  {"torch_dtype", "bfloat16"},
          {"tie_word_embeddings", true}, {"rms_norm_eps", 1e-6}};
}

std::vector<std::string> kinds(const Result& r) {
  std::vector<std::string> out;
  for (const Kind& kind : r.after.target) out.push_back(kind.text());
  return out;
}

TEST(Families, EveryOneIsKnownByItsName) {
  for (const std::string& name : family_names()) EXPECT_NE(family_of(name), nullptr) << name;
  EXPECT_EQ(family_of("bert"), nullptr);
}

TEST(Families, GemmaKeepsItsPatternWhole) {
  Json config = dense("gemma3_text", 26);
  config["sliding_window"] = 512;
  config["sliding_window_pattern"] = 6;
  const Result r = shrunk(config);
  EXPECT_EQ(r.config.at("num_hidden_layers"), 6);
  EXPECT_EQ(kinds(r).back(), "full_attention+mlp");
  EXPECT_EQ(kinds(r).front(), "sliding_attention+mlp");
  EXPECT_EQ(r.config.at("sliding_window_pattern"), 6);
}

TEST(Families, MistralWindowsAllOrNone) {
  Json config = dense("mistral", 32);
  EXPECT_THAT(kinds(shrunk(config)), ElementsAre("full_attention+mlp", "full_attention+mlp"));
  config["sliding_window"] = 4096;
  EXPECT_THAT(kinds(shrunk(config)), ElementsAre("sliding_attention+mlp", "sliding_attention+mlp"));
}

TEST(Families, QwenWindowsFromALayerOn) {
  Json config = dense("qwen2", 32);
  config["sliding_window"] = 4096;
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 20;
  const Result r = shrunk(config);
  EXPECT_THAT(kinds(r), ElementsAre("full_attention+mlp", "sliding_attention+mlp"));
  EXPECT_EQ(r.config.at("max_window_layers"), 1);
  // Switched off, the number says nothing, and stays behind the last layer if it was there.
  config["use_sliding_window"] = false;
  config["max_window_layers"] = 32;
  EXPECT_EQ(shrunk(config).config.at("max_window_layers"), 2);
}

TEST(Families, MixtralRoutesInEveryLayer) {
  Json config = dense("mixtral", 32);
  config["num_local_experts"] = 8;
  config["num_experts_per_tok"] = 2;
  const Result r = shrunk(config);
  EXPECT_EQ(r.config.at("num_local_experts"), 8);
  config["num_local_experts"] = 12;  // divides by 4 only
  EXPECT_EQ(shrunk(config).config.at("num_local_experts"), 4);
  EXPECT_THAT(kinds(r), ElementsAre("full_attention+moe", "full_attention+moe"));
}

TEST(Families, GlmHasDenseFirstLayersAndADraft) {
  Json config = dense("glm4_moe", 46);
  config.update(Json{{"n_routed_experts", 128},
                     {"num_experts_per_tok", 8},
                     {"n_group", 1},
                     {"topk_group", 1},
                     {"n_shared_experts", 1},
                     {"moe_intermediate_size", 128},
                     {"first_k_dense_replace", 1},
                     {"num_nextn_predict_layers", 1}});
  const Result r = shrunk(config);
  EXPECT_THAT(kinds(r), ElementsAre("full_attention+mlp", "full_attention+moe"));
  EXPECT_EQ(r.after.draft.size(), 1u);
  EXPECT_EQ(r.config.at("first_k_dense_replace"), 1);
}

TEST(Families, DeepSeekWithAnIndexerIsAnotherKind) {
  Json config = fixture("deepseek-v3");
  config["model_type"] = "deepseek_v32";
  config.update(Json{{"index_topk", 2048}, {"index_n_heads", 64}, {"index_head_dim", 128}});
  EXPECT_THAT(kinds(shrunk(config)), ElementsAre("mla_indexed+mlp", "mla_indexed+moe"));
  config.erase("index_n_heads");
  EXPECT_THAT(problems_of(config_text(config)), HasSubstr("index_n_heads: is missing"));
}

TEST(Families, DraftLayersByAPeriodStayTheirKind) {
  // Experts in every second layer: id 61 has none, so the draft layer has to stay at an odd id.
  Json config = fixture("deepseek-v3");
  config["first_k_dense_replace"] = 0;
  config["moe_layer_freq"] = 2;
  const Result r = shrunk(config);
  EXPECT_EQ(r.config.at("num_hidden_layers"), 3);
  EXPECT_EQ(r.after.draft.front().ffn, "mlp");
}

TEST(Families, NemotronListsItsBlocksInTwoWays) {
  Json config = fixture("nemotron-3-nano-30b-a3b");
  config.erase("hybrid_override_pattern");
  Json blocks = Json::array();
  for (int i = 0; i < 52; ++i) blocks.push_back(i % 9 == 8 ? "attention" : i % 2 ? "moe" : "mamba");
  config["layers_block_type"] = blocks;
  config["num_nextn_predict_layers"] = 1;
  EXPECT_THAT(problems_of(config_text(config)), HasSubstr("mtp_layers_block_type: is missing"));
  config["mtp_layers_block_type"] = {"attention", "moe"};
  const Result r = shrunk(config);
  EXPECT_EQ(r.config.at("layers_block_type"), Json({"mamba", "moe", "attention"}));
  EXPECT_EQ(r.after.draft.size(), 2u);
  config["hybrid_override_pattern"] = std::string(52, 'M');
  EXPECT_THAT(problems_of(config_text(config)),
              HasSubstr("says other than hybrid_override_pattern"));
}

TEST(Families, V4ZeroAndOneAreTwoKinds) {
  Json config = fixture("deepseek-v4-flash");
  config["compress_ratios"] = Json::array();
  for (int i = 0; i < 43; ++i)
    config["compress_ratios"].push_back(i % 4 == 0 ? 0 : i % 4 == 1 ? 1 : 4);
  config["num_hash_layers"] = 0;
  EXPECT_EQ(shrunk(config).config.at("compress_ratios"), Json({0, 1, 4}));
}

}  // namespace
}  // namespace warmgate::plan::shrink
