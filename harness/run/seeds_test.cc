// The two founding regressions, from their YAML files to verdicts, through real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "harness/run/testing.h"

namespace warmgate::run::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using verdict::Outcome;
using verdict::Verdict;

class Seeds : public Product {
 protected:
  fs::path seed(const std::string& name) { return source_dir() / "scenarios/seeds" / name; }
  std::map<std::string, const verdict::RunRecord*> by_variant(const GateResult& result) {
    std::map<std::string, const verdict::RunRecord*> out;
    for (const auto& variant : result.scenarios.at(0).variants) {
      out[variant.variant.name] = &variant.runs.at(0);
    }
    return out;
  }
};

TEST_F(Seeds, AnAbsentTopkBufferBreaksProfilingAndOnlyThere) {
  const GateResult result = run({seed("dspark-absent-topk-buffer.yaml")});
  const auto runs = by_variant(result);
  for (const auto& [name, run] : runs) SCOPED_TRACE(name + " " + story(*run));
  EXPECT_EQ(result.verdict, Verdict::kPass) << result.scenarios[0].reason;

  const verdict::RunRecord& a = *runs.at("A");
  EXPECT_EQ(a.outcome, Outcome::kCrashed) << story(a);
  EXPECT_EQ(a.phase, "profile");
  EXPECT_EQ(a.exit_code, 1);
  const contract::Result* owned = verdict::find_result(a, "owned-resources");
  ASSERT_NE(owned, nullptr);
  ASSERT_EQ(owned->state, contract::State::kBroken) << story(a);
  const contract::Finding& finding = owned->findings.at(0);
  EXPECT_EQ(finding.key, "topk_indices_buffer");
  EXPECT_EQ(finding.role, "draft");
  EXPECT_EQ(finding.phase, "profile");
  EXPECT_GE(finding.layer, 43);
  EXPECT_FALSE(finding.events.empty());
  ASSERT_TRUE(a.fingerprint);

  const verdict::RunRecord& b = *runs.at("B");
  EXPECT_EQ(b.outcome, Outcome::kPassed) << story(b);
  EXPECT_EQ(b.figures.at("kv_tokens"), 9222468);
  EXPECT_EQ(b.figures.at("blocks_per_request"), 10778);
  EXPECT_NEAR(b.figures.at("concurrency"), 8.80, 0.0088);
  EXPECT_FALSE(b.allowed.empty()) << "what rev A leaves uncovered is listed and printed";

  EXPECT_EQ(runs.at("C")->outcome, Outcome::kPassed) << story(*runs.at("C"));
  // The fix reserves what was reserved before the fault.
  EXPECT_EQ(b.figures.at("workspace_bytes"), runs.at("C")->figures.at("workspace_bytes"));
}

TEST_F(Seeds, WithoutAnExpectationAFailsAndBPasses) {
  options_.expect = false;
  options_.variants = {"A"};
  EXPECT_EQ(run({seed("dspark-absent-topk-buffer.yaml")}).verdict, Verdict::kFail);
  options_.variants = {"B"};
  EXPECT_EQ(run({seed("dspark-absent-topk-buffer.yaml")}).verdict, Verdict::kPass);
}

TEST_F(Seeds, AZeroRatioMakesTwelveKeysWrong) {
  const GateResult result = run({seed("zero-compress-ratio-warmup-key.yaml")});
  const auto runs = by_variant(result);
  EXPECT_EQ(result.verdict, Verdict::kPass) << result.scenarios[0].reason;

  const verdict::RunRecord& a = *runs.at("A");
  EXPECT_EQ(a.outcome, Outcome::kFailed) << story(a);
  EXPECT_EQ(a.figures.at("keys_invalid"), 12);
  for (const char* contract : {"keys-valid", "warmup-complete", "keys-covered"}) {
    EXPECT_THAT(broken(a), Contains(contract)) << story(a);
  }
  std::set<std::string> invalid(a.sets.at("keys_invalid").begin(), a.sets.at("keys_invalid").end());
  for (const std::string& key : invalid) EXPECT_THAT(key, HasSubstr("COMPRESS_RATIO=0"));

  const verdict::RunRecord& lenient = *runs.at("A-lenient");
  EXPECT_EQ(lenient.outcome, Outcome::kFailed) << story(lenient);
  EXPECT_THAT(broken(lenient), Contains("keys-valid"));
  EXPECT_EQ(lenient.figures.at("keys_invalid"), 12);
  EXPECT_EQ(state_of(lenient, "warmup-complete"), "kept") << story(lenient);

  const verdict::RunRecord& b = *runs.at("B");
  EXPECT_EQ(b.outcome, Outcome::kPassed) << story(b);
  EXPECT_EQ(b.figures.at("keys_invalid"), 0);
  std::set<std::string> ratios;
  for (const std::string& key : b.sets.at("keys_warmed")) {
    if (key.rfind("BuildPrefillChunkMetadata", 0) != 0) continue;
    const std::size_t at = key.find("COMPRESS_RATIO=");
    ratios.insert(key.substr(at + 15, key.find_first_of(",}", at) - at - 15));
  }
  EXPECT_EQ(ratios, (std::set<std::string>{"1", "4", "128"}));
}

TEST_F(Seeds, EveryListedArchitectureIsCompiledForOrSaidNotToBe) {
  options_.variants = {"B"};
  const GateResult result = run({seed("zero-compress-ratio-warmup-key.yaml")});
  std::set<std::string> compiled;
  const verdict::RunRecord& b = result.scenarios[0].variants[0].runs[0];
  for (const trace::Event* event : b.trace.of("compile")) {
    if (event->str("backend") == "nvrtc") compiled.insert(event->str("arch"));
  }
  if (jit::nvrtc().available) {
    EXPECT_EQ(compiled, (std::set<std::string>{"sm_80", "sm_90a", "sm_100a", "sm_120a"}));
    EXPECT_TRUE(result.not_observed.empty());
  } else {
    ASSERT_FALSE(result.not_observed.empty());
    EXPECT_THAT(result.not_observed[0], HasSubstr("sm_100a"));
  }
  EXPECT_EQ(state_of(b, "keys-valid"), "kept") << story(b);
}

TEST_F(Seeds, WithoutTheCudaToolkitTheHostHalfJudges) {
  options_.jit = jit::Backend::kHost;
  const GateResult result = run({seed("zero-compress-ratio-warmup-key.yaml")});
  EXPECT_EQ(result.verdict, Verdict::kPass) << result.scenarios[0].reason;
  ASSERT_FALSE(result.not_observed.empty());
  EXPECT_THAT(result.not_observed[0], HasSubstr("sm_120a"));
}

TEST_F(Seeds, TheFixTakenOutOfTheRightVariantFails) {
  // The mutation: B with the seam that its pull request changed set back to the fault.
  options_.variants = {"B"};
  options_.load.overlays = {"seams.profile.topk_bound=buffer_required"};
  const GateResult dspark = run({seed("dspark-absent-topk-buffer.yaml")});
  EXPECT_EQ(dspark.verdict, Verdict::kFail);
  EXPECT_THAT(broken(dspark.scenarios[0].variants[0].runs[0]), Contains("owned-resources"));
  options_.load.overlays = {"seams.warmup.chunk_ratios=config_raw"};
  const GateResult ratio = run({seed("zero-compress-ratio-warmup-key.yaml")});
  EXPECT_EQ(ratio.verdict, Verdict::kFail);
  EXPECT_THAT(broken(ratio.scenarios[0].variants[0].runs[0]), Contains("keys-valid"));
}

}  // namespace
}  // namespace warmgate::run::testing
