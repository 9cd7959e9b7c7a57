#include "harness/scenario/identity.h"

#include <gmock/gmock.h>

#include "harness/scenario/test_files.h"

namespace warmgate::scenario {
namespace {

using ::testing::HasSubstr;

using Identity = TestFiles;

TEST_F(Identity, IsOfWhatRunsAndNotOfItsNames) {
  const auto id = [&](const std::string& text) { return load(text).variants[0].identity; };
  const std::string base = id(kSmall);
  EXPECT_EQ(base.size(), 64u);
  EXPECT_EQ(id(kSmall), base);
  EXPECT_EQ(id(std::string("# a comment\nabout: other words\n") + kSmall +
               "tags: [a]\nexpect: {outcome: passed}\ngate: {kv_bytes: {min: 5}}\n"
               "allow: [{contract: starts, reason: r}]\nsource: {repo: a/b}\n"),
            base);
  EXPECT_EQ(id(std::string(kSmall) + "variants: {X: {}}\n"), base);
  EXPECT_EQ(id(std::string(kSmall) + "target: {native: {env: {A: b}, silence: 5 s}}\n"), base);
  EXPECT_EQ(id(std::string(kSmall) + "checks: {numerics: all, rope_reference: plain}\n"), base);
  // A value that is said and one that is the default are the same run.
  EXPECT_EQ(id(std::string(kSmall) + "seed: 0\nparallel: {tp: 1}\n"), base);
  EXPECT_EQ(id(std::string(kSmall) + "behaviour: vllm-pr50693\n"), base);  // the default's value
  const auto copied = load_scenario(write("elsewhere/t.yml", kSmall)).variants[0].identity;
  EXPECT_EQ(copied, base);
  for (const char* change :
       {"seed: 1\n", "parallel: {tp: 2}\n", "probe_keys: true\n", "architectures: [sm_80]\n",
        "seams: {jit.compiler: lenient}\n", "target: {native: {device: cpu}}\n",
        "drafter: {method: dspark, num_speculative_tokens: 5}\n"}) {
    EXPECT_NE(id(std::string(kSmall) + change), base) << change;
  }
}

TEST_F(Identity, ANameOfTheModelIsNoPartOfIt) {
  Resolved one;
  one.model.name = "a";
  Resolved other = one;
  other.model.name = "b";
  EXPECT_EQ(identity({one}), identity({other}));
  other.model.rms_norm_eps = 1e-5;
  EXPECT_NE(identity({one}), identity({other}));
  EXPECT_NE(identity({one}), identity({one, one}));
}

TEST_F(Identity, OfKnownInputIsKnown) {
  // Pins the form: whoever changes it makes every stored result a stranger.
  EXPECT_EQ(identity({Resolved{}}),
            "0a3daa7325b720cd33e26117326c52bb6dadbdf31ab4d913b3af623f1a8ef8fa");
}

TEST_F(Identity, CommandsDifferByTheirArguments) {
  const auto id = [&](const std::string& argv) {
    return load("scenario: s\ntarget: {command: {argv: [" + argv + "]}}\n").variants[0].identity;
  };
  EXPECT_NE(id("a"), id("a, b"));
  EXPECT_EQ(id("a"), id("a"));
}

TEST_F(Identity, ResolveNamesTheOriginOfEveryValue) {
  const Scenario s = load(std::string(kSmall) +
                          "behaviour: vllm-rev-a\nparallel: {tp: 2}\n"
                          "ranks: {1: {seed: 4}}\n"
                          "variants: {A: {behaviour: vllm-pr50298, limits: {max_num_seqs: 4}}}\n");
  const nlohmann::json out = resolve_json(s.variants[0]);
  EXPECT_EQ(out["schema"], "resolve/1.0");
  EXPECT_EQ(out["behaviours"], nlohmann::json({"vllm-rev-a", "vllm-pr50298"}));
  std::map<std::string, nlohmann::json> values;
  for (const auto& value : out["values"]) {
    EXPECT_TRUE(values.emplace(value["key"], value).second) << value["key"];
    EXPECT_FALSE(value["origin"].get<std::string>().empty()) << value["key"];
  }
  const auto origin = [&](const std::string& key) {
    return values.at(key)["origin"].get<std::string>();
  };
  EXPECT_THAT(origin("limits.max_model_len"), HasSubstr("s.yaml:3 (scenario)"));
  EXPECT_THAT(origin("limits.max_num_seqs"), HasSubstr("s.yaml:8 (variant A)"));
  EXPECT_THAT(origin("model.hidden_size"), HasSubstr("small-dspark.yaml:"));
  EXPECT_THAT(origin("model.hidden_size"), HasSubstr("(preset small-dspark)"));
  EXPECT_THAT(origin("seams.profile.topk_bound"), HasSubstr("(behaviour vllm-pr50298)"));
  EXPECT_THAT(origin("seams.c128a.width"), HasSubstr("(behaviour vllm-rev-a)"));
  EXPECT_EQ(origin("limits.max_num_batched_tokens"), "default");
  EXPECT_EQ(origin("target.native.device"), "default");
  EXPECT_THAT(origin("workload.groups"), HasSubstr("s.yaml:4"));
  EXPECT_THAT(origin("ranks.1.seed"), HasSubstr("s.yaml:7"));
  EXPECT_EQ(values.at("ranks.1.seed")["value"], 4);
  EXPECT_EQ(values.count("ranks.1.limits.max_model_len"), 0u);  // as on rank 0
  EXPECT_EQ(values.at("seams.profile.topk_bound")["value"], "buffer_required");
}

}  // namespace
}  // namespace warmgate::scenario
