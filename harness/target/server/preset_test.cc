#include "harness/target/server/preset.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "harness/scenario/scenario.h"
#include "harness/target/server/preset_fields.h"
#include "harness/target/test_support.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

fs::path servers() { return target::testing::source("fixtures/servers"); }

// The first-class engines by name, and whatever else lies there.
TEST(Presets, EveryFileIsWhole) {
  const std::vector<std::string> names = preset_names(servers());
  for (const char* engine : {"vllm", "sglang", "llamacpp", "trtllm", "lmdeploy", "tgi"}) {
    EXPECT_THAT(names, Contains(engine));
  }
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    ServerPreset preset;
    try {
      preset = load_preset(servers() / (name + ".yaml"));
    } catch (const scenario::ScenarioError& error) {
      ADD_FAILURE() << error.what();
      continue;
    }
    EXPECT_EQ(preset.name, name);
    EXPECT_FALSE(preset.completion.text.empty());
    EXPECT_TRUE(preset.completion.classes.count("greedy"));
    EXPECT_FALSE(preset.health.front().means.empty());
    for (const MetricName& metric : preset.metric_names) {
      EXPECT_NE(trace::find_figure(metric.ours), nullptr) << metric.ours;
    }
    // What serves ids has to know which ids are legal.
    EXPECT_TRUE(preset.completion.prompt != "ids" || preset.completion.last_id > 0);
    EXPECT_GE(preset.processes.grace_s, 1);
    // Nothing of it may be a secret's name or a machine's.
    for (const auto& [variable, value] : preset.offline.env)
      EXPECT_FALSE(value.empty()) << variable;
  }
}

TEST(Presets, FirstClassEnginesSayHowToStartOffline) {
  for (const char* engine : {"vllm", "sglang", "llamacpp", "trtllm"}) {
    const ServerPreset preset = find_preset(engine, servers());
    EXPECT_NE(preset.command_for(""), nullptr) << engine;
    EXPECT_FALSE(preset.offline.env.empty()) << engine;
    EXPECT_FALSE(preset.stores.empty()) << engine;
    EXPECT_NE(preset.metrics.kind, "none") << engine;
  }
}

TEST(Presets, VersionPicksTheCommandForm) {
  const ServerPreset vllm = find_preset("vllm", servers());
  EXPECT_THAT(vllm.command_for("")->argv.front(), "vllm");
  EXPECT_THAT(vllm.command_for("0.11.1")->argv.front(), "vllm");
  EXPECT_THAT(vllm.command_for("0.5.2")->argv.front(), "vllm");
  EXPECT_THAT(vllm.command_for("0.5.1")->argv.front(), "python3");
}

TEST(Presets, VersionsAreNumbersNotText) {
  EXPECT_TRUE(older_version("0.9", "0.10"));
  EXPECT_FALSE(older_version("0.10", "0.9"));
  EXPECT_TRUE(older_version("0.5.2", "0.5.10"));
  EXPECT_TRUE(older_version("1", "1.0"));
  EXPECT_FALSE(older_version("1.0", "1.0"));
  EXPECT_TRUE(older_version("v0.8.4", "v0.8.5rc1"));
  EXPECT_TRUE(older_version("", "0"));
  EXPECT_FALSE(older_version("", ""));
}

class PresetFile : public ::testing::Test {
 protected:
  // The problems of a preset made of a whole one with `from` replaced.
  std::string problems(const std::string& from, const std::string& to) {
    std::ifstream in(servers() / "llamacpp.yaml");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const fs::path file = dir_.path() / "llamacpp.yaml";
    std::ofstream(file) << text;
    try {
      (void)load_preset(file);
      return "";
    } catch (const scenario::ScenarioError& error) {
      return error.what();
    }
  }

 private:
  target::testing::TempDir dir_;
};

TEST_F(PresetFile, MistakesAreNamedWithTheirPlace) {
  EXPECT_EQ(problems("about: >-", "about: >-"), "");
  EXPECT_THAT(problems("preset: llamacpp", "preset: lama"),
              HasSubstr("is not the name of the file"));
  EXPECT_THAT(problems("proves: loaded", "proves: loadet"),
              HasSubstr("health[0].proves: expected one of process, loaded, works"));
  EXPECT_THAT(problems("ours: served_prompt_tokens", "ours: served_promt_tokens"),
              HasSubstr("did you mean served_prompt_tokens?"));
  EXPECT_THAT(problems("metrics:", "metricss:"), HasSubstr("did you mean metrics?"));
  EXPECT_THAT(problems("path: /health", "path: health"), HasSubstr("a path that begins with /"));
  EXPECT_THAT(problems("prompt: \"{prompt}\"", "prompt: \"x\""),
              HasSubstr("{prompt} stands nowhere"));
  EXPECT_THAT(problems("logprobs: {n_probs: 5}", "logprob: {n_probs: 5}"),
              HasSubstr("'logprob' is no class of requests; did you mean logprobs?"));
  EXPECT_THAT(problems("name: cuda", "name: engine"), HasSubstr("two stores are called engine"));
  EXPECT_THAT(problems("name: cuda,", "name: cuda, below: nothing,"),
              HasSubstr("there is no other store 'nothing'"));
  EXPECT_THAT(problems("[llama-server, -m, \"{model}\"", "[llama-server, -m, model"),
              HasSubstr("{model} stands nowhere in it"));
  EXPECT_THAT(problems("ready, serve, shutdown]", "ready, serve, sleep]"),
              HasSubstr("llamacpp.yaml"));
}

TEST_F(PresetFile, UnknownNamesSayWhichThereAre) {
  try {
    (void)find_preset("vlm", servers());
    FAIL();
  } catch (const scenario::ScenarioError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean vllm?"));
  }
  EXPECT_THROW((void)find_preset("../models/small-flash", servers()), scenario::ScenarioError);
}

TEST_F(PresetFile, BodiesKeepTheirTypes) {
  const Completion body = find_preset("llamacpp", servers()).completion;
  EXPECT_TRUE(body.body.at("stream").is_boolean());
  EXPECT_TRUE(body.body.at("temperature").is_number_integer());
  EXPECT_EQ(body.body.at("n_predict"), "{output_tokens}");
  EXPECT_THAT(body.text, ElementsAre("/content"));
}

}  // namespace
}  // namespace warmgate::target
