// Single facts about runs of our engine that several folders have to agree on.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "harness/run/testing.h"
#include "harness/scenario/bounds.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::run::testing {
namespace {

using ::testing::HasSubstr;

class EngineRun : public Product {
 protected:
  EngineRun() { options_.jit = jit::Backend::kHost; }
};

std::string with(const std::string& model, const std::string& more) {
  return "scenario: s\nmodel: {preset: " + model +
         "}\nlimits: {max_model_len: 65536, max_num_seqs: 64, max_num_batched_tokens: 2048, "
         "device_memory_bytes: 288 GB}\nworkload: {requests: 1, prompt_tokens: 8, output_tokens: "
         "2}\n" +
         more;
}

// The reader bounds the pool by what it takes for a block; the engine sizes it by its caches.
TEST_F(EngineRun, ABlockIsWhatTheReaderTakesItFor) {
  const std::string drafter = "drafter: {method: dspark, num_speculative_tokens: 7}\n";
  const std::vector<std::string> texts = {
      with("small-flash", ""),
      with("small-dspark", drafter),
      with("small-dspark, indexer_cache_dtype: fp4", ""),
      with("small-flash, layers: [{ratio: 128, count: 3}]", ""),
      with("small-flash, layers: [{ratio: 0, count: 4}]", ""),
      with("small-flash, layers: [{ratio: 0, count: 9}, {ratio: 4}]", ""),
      with("small-flash, head_dim: 192, qk_rope_head_dim: 64, index_head_dim: 64", ""),
      with("deepseek-v4-flash-0731", drafter),
  };
  for (const std::string& text : texts) {
    const verdict::RunRecord run = run_one(put("s.yaml", text));
    const auto figure = run.figures.find("block_stride_bytes");
    ASSERT_NE(figure, run.figures.end()) << text << story(run);
    const scenario::Resolved& resolved = last_.scenarios[0].scenario.variants[0].ranks[0];
    EXPECT_EQ(static_cast<std::int64_t>(figure->second), scenario::kv_block_bytes(resolved))
        << text;
  }
}

// Rev A's short warmup never runs the indexer's top-k; its 1 MiB lies in what the indexer reserved.
TEST_F(EngineRun, TheTopkOfRevALivesOnItsKindsReservation) {
  const verdict::RunRecord run =
      run_one(put("s.yaml",
                  "scenario: s\nbehaviour: vllm-rev-a\nmodel: {preset: small-flash}\n"
                  "limits: {max_model_len: 65536, max_num_seqs: 64, max_num_batched_tokens: 2048, "
                  "device_memory_bytes: 80 GiB}\n"
                  "workload: {requests: 1, prompt_tokens: 9000, output_tokens: 4}\n"));
  const contract::Result* fits = verdict::find_result(run, "workspace-fits");
  ASSERT_NE(fits, nullptr);
  for (const contract::Finding& finding : fits->findings)
    EXPECT_NE(finding.key, "workspace/c4a/topk") << finding.message;
  bool asked = false;
  for (const trace::Event* e : run.trace.of("workspace"))
    asked = asked || (e->str("consumer") == "topk" && e->str("phase") == "serve");
  EXPECT_TRUE(asked) << "the prompt is too short to show anything";
}

TEST_F(EngineRun, EveryCounterOfTheEngineIsAFigure) {
  const verdict::RunRecord run = run_one(put(
      "s.yaml", with("small-dspark", "drafter: {method: dspark, num_speculative_tokens: 7}\n")));
  for (const trace::Event* e : run.trace.of("counter"))
    EXPECT_NE(trace::find_figure(e->str("name")), nullptr) << e->str("name");
  EXPECT_EQ(run.figures.at("preemptions"), 0);
}

TEST_F(EngineRun, ThePeakOfAWorkerThatLivesMillisecondsIsKnown) {
  const verdict::RunRecord run = run_one(put("s.yaml", with("small-flash", "")));
  EXPECT_GT(run.figures.at("peak_rss_bytes"), 1 << 20);
}

TEST_F(EngineRun, ProbedKeysAreCheckedByTheEngine) {
  const auto probes = [&](const std::string& more) {
    const verdict::RunRecord run = run_one(put("s.yaml", with("small-flash", more)));
    std::size_t good = 0, bad = 0;
    for (const trace::Event* e : run.trace.of("check")) {
      if (e->str("kind") != "probe") continue;
      EXPECT_NE(e->src, "harness");
      ++(e->flag("ok") ? good : bad);
    }
    return std::pair{good, bad};
  };
  EXPECT_EQ(probes(""), std::pair(std::size_t{0}, std::size_t{0}));
  const auto [good, bad] = probes("probe_keys: true\n");
  EXPECT_GT(good, 10u);
  EXPECT_EQ(bad, 0u);
  const auto [some, broken] =
      probes("probe_keys: true\nseams: {warmup.chunk_ratios: config_raw, jit.compiler: lenient}\n");
  EXPECT_GT(some, 0u);
  EXPECT_GT(broken, 0u);
  // A program that is not ours has no keys of ours to launch.
  const fs::path command =
      put("c.yaml", "scenario: c\nprobe_keys: true\ntarget: {command: {argv: [true]}}\n");
  try {
    run({command});
    ADD_FAILURE() << "probe_keys was taken and not honoured";
  } catch (const scenario::ScenarioError& error) {
    EXPECT_THAT(error.what(), HasSubstr("c.yaml:2:13: probe_keys: keys are probed by our own"));
  }
}

}  // namespace
}  // namespace warmgate::run::testing
