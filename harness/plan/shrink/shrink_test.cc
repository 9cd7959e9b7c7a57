#include "harness/plan/shrink/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/plan/shrink/testing.h"

namespace warmgate::plan::shrink {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Shrink, DeepSeekV4WithDSparkKeepsEveryKindTappedOrNot) {
  const Result r = shrunk(fixture("deepseek-v4-flash-0731"));
  // Window layers with hash routing, both compressions with hash routing or without, the three
  // taps.
  EXPECT_THAT(r.selection.kept, ElementsAre(0, 2, 3, 4, 40, 41, 42));
  EXPECT_EQ(r.config.at("compress_ratios"), Json({0, 4, 128, 4, 4, 128, 4, 0, 0, 0}));
  EXPECT_EQ(r.config.at("dspark_target_layer_ids"), Json({4, 5, 6}));
  EXPECT_EQ(r.config.at("num_hidden_layers"), 7);
  EXPECT_EQ(r.config.at("num_hash_layers"), 2);
  EXPECT_EQ(r.config.at("n_routed_experts"), 16);
  EXPECT_EQ(r.config.at("max_position_embeddings"), 1048576);
  EXPECT_EQ(r.after.draft.size(), 3u);
  EXPECT_TRUE(r.fits());
  EXPECT_THAT(::testing::PrintToString(r.gates), HasSubstr("drafts > 0"));
  EXPECT_THAT(::testing::PrintToString(r.gates), HasSubstr("never accepted > 0"));
  EXPECT_THAT(shell_text(r.lines.at(0)),
              HasSubstr("\"method\": \"dspark\", \"num_speculative_tokens\": 5"));
}

TEST(Shrink, Llama) {
  const Result r = shrunk(fixture("llama-3.1-8b"));
  EXPECT_EQ(r.config.at("num_hidden_layers"), 2);
  EXPECT_EQ(r.changes.size(), 1u);
  EXPECT_THAT(shell_text(r.lines.at(0)), Not(HasSubstr("speculative")));
  EXPECT_THAT(::testing::PrintToString(r.gates), Not(HasSubstr("draft")));
}

TEST(Shrink, Qwen3Moe) {
  Json config = fixture("qwen3-30b-a3b");
  config["mlp_only_layers"] = {0, 1, 47};
  const Result r = shrunk(config);
  EXPECT_THAT(r.selection.kept, ElementsAre(0, 2));
  EXPECT_EQ(r.config.at("mlp_only_layers"), Json::array({0}));
  EXPECT_EQ(r.config.at("max_window_layers"), 2);  // still behind the last layer
  EXPECT_EQ(r.config.at("num_experts"), 16);
}

TEST(Shrink, HybridsKeepTheirPeriodOrTheirPattern) {
  const Result next = shrunk(fixture("qwen3-next-80b-a3b"));
  EXPECT_EQ(next.config.at("num_hidden_layers"), 4);  // the interval is a limit of its own
  EXPECT_EQ(next.config.at("full_attention_interval"), 4);
  const Result jamba = shrunk(fixture("jamba-1.5-mini"));
  EXPECT_EQ(jamba.config.at("num_hidden_layers"), 5);
  const Result nemotron = shrunk(fixture("nemotron-3-nano-30b-a3b"));
  EXPECT_EQ(nemotron.config.at("hybrid_override_pattern"), "ME*");
}

TEST(Shrink, DraftLayersAndTheirNamesMoveWithTheTarget) {
  Json config = fixture("deepseek-v3");
  config["quantization_config"]["modules_to_not_convert"] = {"lm_head",
                                                             "model.layers.2.mlp.gate_proj",
                                                             "model.layers.3.mlp.gate",
                                                             "model.layers.60.mlp.gate",
                                                             "model.layers.61.eh_proj",
                                                             "model.layers.3.mlp.experts.200.w1",
                                                             "model.layers.3.mlp.experts.3.w1"};
  const Result r = shrunk(config);
  EXPECT_THAT(r.selection.kept, ElementsAre(0, 3));
  EXPECT_EQ(r.config.at("first_k_dense_replace"), 1);
  EXPECT_EQ(r.config.at("num_nextn_predict_layers"), 1);
  EXPECT_EQ(r.config.at("quantization_config").at("modules_to_not_convert"),
            Json({"lm_head", "model.layers.1.mlp.gate", "model.layers.2.eh_proj",
                  "model.layers.1.mlp.experts.3.w1"}));
  EXPECT_FALSE(r.config.contains("auto_map"));
}

TEST(Shrink, PatternsOverLayersAreRefused) {
  Json config = fixture("deepseek-v3");
  config["quantization_config"]["ignore"] = {"re:.*layers\\.(4[0-2])\\..*"};
  EXPECT_THAT(problems_of(config_text(config)), HasSubstr("quantization_config.ignore[0]: is"));
}

TEST(Shrink, ExpertsOnWish) {
  Request request;
  request.experts = 256;
  EXPECT_EQ(shrunk(fixture("deepseek-v4-flash"), request).config.at("n_routed_experts"), 256);
  for (const std::int64_t wrong : {4, 5, 12, 100, 512}) {
    request.experts = wrong;
    EXPECT_THAT(problems_of(fixture_text("deepseek-v4-flash"), request),
                HasSubstr("n_routed_experts: --experts " + std::to_string(wrong)));
  }
  request.experts = 8;
  EXPECT_THAT(problems_of(fixture_text("llama-3.1-8b"), request), HasSubstr("no experts"));
}

TEST(Shrink, ExpertsKeepWhatRoutingKernelsAskFor) {
  Json config = fixture("deepseek-v4-flash");
  config["n_routed_experts"] = 384;  // twice the top-k would be 12
  EXPECT_EQ(shrunk(config).config.at("n_routed_experts"), 16);
}

TEST(Shrink, GroupsOfExpertsKeepTheirChoice) {
  // 8 groups of which 4 are chosen, 8 experts a token: 16 experts are 8 in 4 groups.
  const Result r = shrunk(fixture("deepseek-v3"));
  EXPECT_EQ(r.config.at("n_routed_experts"), 16);
  Json config = fixture("deepseek-v3");
  config["topk_group"] = 2;
  EXPECT_EQ(shrunk(config).config.at("n_routed_experts"), 32);
}

TEST(Shrink, RanksThatDoNotDivideAreNamed) {
  Request request;
  request.parallel.tp = 3;
  const std::string problems = problems_of(fixture_text("deepseek-v4-flash"), request);
  EXPECT_THAT(problems, HasSubstr("num_attention_heads: 64 does not divide by --tp 3"));
  EXPECT_THAT(problems, HasSubstr("o_groups: 8 does not divide by --tp 3"));
  EXPECT_THAT(problems, HasSubstr("index_n_heads: 64 does not divide by --tp 3"));
  request.parallel = {16, 1};  // 64 heads, but 8 groups
  EXPECT_THAT(problems_of(fixture_text("deepseek-v4-flash"), request),
              ::testing::AllOf(HasSubstr("o_groups"), Not(HasSubstr("heads"))));
  request.parallel = {1, 24};
  EXPECT_THAT(problems_of(fixture_text("deepseek-v4-flash"), request),
              HasSubstr("n_routed_experts: 256 does not divide by --ep 24"));
  request.parallel = {1, 32};
  EXPECT_EQ(shrunk(fixture("deepseek-v4-flash"), request).config.at("n_routed_experts"), 32);
}

// Parameters of the published models, in billions; the arithmetic leaves out norms and biases.
TEST(Shrink, TheArithmeticIsThatOfThePublishedModels) {
  const auto parameters = [](const std::string& name) {
    const Json config = fixture(name);
    Complaints complaints(name);
    const Structure s = read_structure(config, complaints);
    return weigh(config, s, {}, complaints).elements();
  };
  EXPECT_NEAR(parameters("llama-3.1-8b") / 8030261248.0, 1, 1e-3);
  EXPECT_NEAR(parameters("qwen3-30b-a3b") / 30532122624.0, 1, 1e-3);
  EXPECT_NEAR(parameters("qwen3-next-80b-a3b") / 79674391296.0, 1, 1e-3);
  EXPECT_NEAR(parameters("jamba-1.5-mini") / 51.57e9, 1, 2e-3);
  EXPECT_NEAR(parameters("nemotron-3-nano-30b-a3b") / 31.58e9, 1, 2e-3);
  // 671.0 and the draft layer's 11.5 without the embeddings it shares.
  EXPECT_NEAR(parameters("deepseek-v3") / (671.03e9 + 11.5e9), 1, 2e-3);
  EXPECT_NEAR(parameters("gpt-oss-20b") / 20.91e9, 1, 2e-3);
  // Safetensors of DeepSeek-V4-Flash: about 160 GB.
  EXPECT_NEAR(shrunk(fixture("deepseek-v4-flash")).full_bytes / 160e9, 1, 0.03);
}

TEST(Shrink, EveryFixtureFitsASliceOf16GiB) {
  for (const std::string& name : fixture_names()) {
    const Result r = shrunk(fixture(name));
    EXPECT_TRUE(r.fits()) << name << " " << r.bytes_per_rank;
    double sum = 0;
    for (const Weight& w : r.weights) sum += w.count * w.elements * w.bytes_each;
    EXPECT_DOUBLE_EQ(sum, r.bytes) << name;
  }
}

TEST(Shrink, MemoryIsHeldAgainstARank) {
  Request request;
  request.memory_bytes = 4 * kGiB;
  EXPECT_EQ(allowed_for_weights(request.memory_bytes), 2 * kGiB);
  EXPECT_EQ(allowed_for_weights(16 * kGiB), 12 * kGiB);
  EXPECT_FALSE(shrunk(fixture("deepseek-v4-flash-0731"), request).fits());
  request.parallel.tp = 8;
  EXPECT_TRUE(shrunk(fixture("deepseek-v4-flash-0731"), request).fits());
}

}  // namespace
}  // namespace warmgate::plan::shrink
