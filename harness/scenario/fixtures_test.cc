// The presets, behaviours and scenarios that come with the product.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "harness/scenario/seams.h"
#include "harness/scenario/test_files.h"

namespace warmgate::scenario {
namespace {

using ::testing::ElementsAre;

using Fixtures = TestFiles;

struct Kinds {
  int swaonly = 0, c4a = 0, c128a = 0;
  bool operator==(const Kinds&) const = default;
};
Kinds kinds(const Model& model) {
  Kinds out;
  for (std::int64_t layer = 0; layer < model.num_hidden_layers; ++layer) {
    const auto ratio = effective_ratio(model, layer);
    ++(ratio == 1 ? out.swaonly : ratio == 4 ? out.c4a : out.c128a);
  }
  return out;
}

TEST_F(Fixtures, PresetsAreThePublishedConfigs) {
  const auto model = [&](const std::string& preset) {
    return load("scenario: s\nmodel: {preset: " + preset +
                "}\nlimits: {device_memory_bytes: 288000000000}\n")
        .variants[0]
        .ranks[0]
        .model;
  };
  const Model flash = model("deepseek-v4-flash");
  EXPECT_EQ(kinds(flash), (Kinds{2, 21, 20}));
  EXPECT_EQ(flash.compress_ratios.size(), 44u);
  EXPECT_EQ(flash.index_topk, 512);
  EXPECT_EQ(flash.o_groups, 8);
  const Model dspark = model("deepseek-v4-flash-0731");
  EXPECT_EQ(dspark.compress_ratios.size(), 46u);
  EXPECT_EQ(kinds(dspark), (Kinds{2, 21, 20}));
  const Model pro = model("deepseek-v4-pro");
  EXPECT_EQ(kinds(pro), (Kinds{0, 30, 31}));
  EXPECT_EQ(pro.compress_ratios.size(), 62u);
  EXPECT_EQ(pro.hidden_size, 7168);
  EXPECT_EQ(pro.num_attention_heads, 128);
  EXPECT_EQ(pro.o_groups, 16);
  EXPECT_EQ(pro.q_lora_rank, 1536);
  EXPECT_EQ(pro.index_topk, 1024);
  EXPECT_EQ(pro.n_routed_experts, 384);
  EXPECT_EQ(pro.moe_intermediate_size, 3072);
  EXPECT_DOUBLE_EQ(pro.routed_scaling_factor, 2.5);
  for (const char* small : {"small-flash", "small-dspark"}) {
    const Kinds k = kinds(model(small));
    EXPECT_TRUE(k.swaonly && k.c4a && k.c128a) << small;
    EXPECT_LE(k.swaonly + k.c4a + k.c128a, 8) << small;
  }
  EXPECT_THAT(model("zero-ratio").compress_ratios, ElementsAre(0, 0, 4, 128, 0));
}

TEST_F(Fixtures, DsparkOf0731) {
  const Drafter d = load(
                        "scenario: s\nmodel: {preset: deepseek-v4-flash-0731}\n"
                        "limits: {device_memory_bytes: 288000000000}\n"
                        "drafter: {method: dspark, num_speculative_tokens: 7}\n")
                        .variants[0]
                        .ranks[0]
                        .drafter;
  EXPECT_EQ(d.block_size, 5);
  EXPECT_EQ(d.layers, 3);
  EXPECT_EQ(d.markov_rank, 256);
  EXPECT_EQ(d.noise_token_id, 128799);
  EXPECT_THAT(d.target_layer_ids, ElementsAre(40, 41, 42));
  EXPECT_EQ(d.topk_indices_buffer, "own");
}

TEST_F(Fixtures, TheExampleOfTheDesignLoadsOnEveryDevice) {
  for (const char* device : {"", "meta", "cpu", "cuda"}) {
    LoadOptions options;
    options.device = device;
    const Scenario s =
        load_scenario(source() / "scenarios/seeds/dspark-absent-topk-buffer.yaml", options);
    ASSERT_EQ(s.variants.size(), 3u);
    const auto seam = [&](int i) {
      return s.variants[static_cast<std::size_t>(i)].ranks[0].seams.at("profile.topk_bound");
    };
    const bool cuda = std::string(device) == "cuda";
    EXPECT_EQ(s.variants[0].ranks.size(), cuda ? 1u : 2u);
    EXPECT_EQ(seam(0), "buffer_required");
    EXPECT_EQ(seam(1), "kind_aware");
    EXPECT_EQ(seam(2), "buffer_required");
    EXPECT_EQ(s.variants[0].ranks[0].drafter.topk_indices_buffer, "absent");
    EXPECT_EQ(s.variants[2].ranks[0].drafter.topk_indices_buffer, "own");
    EXPECT_EQ(*s.variants[0].expect.phase, "profile");
    // What is computed is computed on a small model; what is only counted is full size.
    const bool cpu = std::string(device) == "cpu";
    EXPECT_EQ(s.variants[1].expect.figures.at("kv_tokens").low, cpu    ? 2587
                                                                : cuda ? 134709
                                                                       : 9222468);
    const auto& limits = s.variants[0].ranks[0].limits;
    EXPECT_EQ(*limits.kv_pool_bytes, cpu ? 100000000 : cuda ? 4008960000 : 95007340800);
    EXPECT_EQ(limits.device_memory_bytes, cpu ? std::int64_t{4} << 30 : 288000000000);
    EXPECT_EQ(s.variants[0].ranks[0].model.num_hidden_layers, cpu ? 5 : 43);
  }
}

TEST_F(Fixtures, EveryScenarioAndBehaviourLoads) {
  const auto files = find_scenarios({(source() / "scenarios").string()});
  EXPECT_GE(files.size(), 7u);
  std::set<std::string> names;
  for (const auto& file : files) {
    EXPECT_EQ(problems_of(file), "");
    const Scenario s = load_scenario(file);
    EXPECT_EQ(s.name, file.stem()) << file;
    EXPECT_FALSE(s.about.empty()) << file;
    EXPECT_TRUE(names.insert(s.name).second) << s.name;
  }
  int behaviours = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source() / "fixtures/behaviours")) {
    ++behaviours;
    EXPECT_EQ(problems(std::string(kSmall) + "behaviour: " + entry.path().stem().string() + "\n"),
              "")
        << entry.path();
  }
  EXPECT_GE(behaviours, 6);
}

TEST_F(Fixtures, TheScenarioOnThePageYourEngineLoads) {
  std::ifstream in(source() / "fixtures/servers/README.md");
  const std::string page(std::istreambuf_iterator<char>(in), {});
  const std::string mark = "```yaml\n# founding.yaml\n";
  const auto begin = page.find(mark);
  ASSERT_NE(begin, std::string::npos);
  const auto end = page.find("```", begin + mark.size());
  ASSERT_NE(end, std::string::npos);
  EXPECT_EQ(problems(page.substr(begin + mark.size(), end - begin - mark.size())), "");
}

TEST_F(Fixtures, RevAGivesEverySeam) {
  const Scenario s = load(std::string(kSmall) + "behaviour: vllm-rev-a\n");
  for (const SeamRule& seam : seams()) {
    EXPECT_NE(s.variants[0].origins.at("seams." + std::string(seam.name)), "default") << seam.name;
  }
}

TEST_F(Fixtures, FoundThroughTheEnvironmentAndTheOption) {
  const std::string text =
      "scenario: s\nmodel: {preset: mine}\nlimits: {device_memory_bytes: 1 GiB}\n";
  EXPECT_THAT(problems(text), ::testing::HasSubstr("no preset 'mine'"));
  write("fx/models/mine.yaml",
        "preset: mine\nmodel: {hidden_size: 64, num_attention_heads: 8, num_hidden_layers: 1, "
        "q_lora_rank: 8, o_groups: 4, o_lora_rank: 8, compress_ratios: [4]}\n");
  LoadOptions options;
  options.fixtures = folder_ / "fx";
  EXPECT_EQ(problems(text, options), "");
  ::setenv("WARMGATE_FIXTURES", (folder_ / "fx").c_str(), 1);
  EXPECT_EQ(problems(text), "");
  ::setenv("WARMGATE_FIXTURES", (folder_ / "none").c_str(), 1);
  EXPECT_THAT(problems(text), ::testing::HasSubstr("set WARMGATE_FIXTURES"));
  ::unsetenv("WARMGATE_FIXTURES");
}

}  // namespace
}  // namespace warmgate::scenario
