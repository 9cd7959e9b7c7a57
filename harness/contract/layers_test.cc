// owned-resources, workspace-fits, warmup-complete.
#include <gtest/gtest.h>

#include <limits>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

TEST(OwnedResources, Kept) {
  EXPECT_EQ(judge_named("owned-resources", good_end()).state, State::kKept);
}

TEST(OwnedResources, ThreeDraftLayersAreOneFinding) {
  TraceBuilder t;
  t.hello().begin("load").layer(0, "c4a", "target", {"topk_indices_buffer"});
  for (int id : {43, 44, 45}) t.layer(id, "swaonly", "draft", {"swa_cache", "attn_sink"});
  t.end("load").begin("profile");
  for (int id : {43, 44, 45})
    t.add("requires", {{"layer", id},
                       {"resource", "topk_indices_buffer"},
                       {"owned", false},
                       {"layer_kind", "swaonly"},
                       {"role", "draft"}});
  const Result result = judge_named("owned-resources", t);
  ASSERT_EQ(result.findings.size(), 1u);
  const Finding& f = result.findings[0];
  EXPECT_EQ(f.key, "topk_indices_buffer");
  EXPECT_EQ(f.count, 3u);
  EXPECT_EQ(f.layer, 43);
  EXPECT_EQ(f.phase, "profile");
  EXPECT_EQ(f.seen, "owns attn_sink, swa_cache");
  EXPECT_EQ(f.detail["layers"], (json{43, 44, 45}));
}

TEST(OwnedResources, StoppingAtTheFirstLayerStillNamesItsLike) {
  TraceBuilder t(2);
  for (int rank : {0, 1}) {
    t.hello(rank).begin("load", rank);
    for (int id : {43, 44, 45}) t.layer(id, "swaonly", "draft", {"swa_cache"}, rank);
    t.end("load", rank).begin("profile", rank);
    t.add("requires", {{"layer", 43}, {"resource", "topk_indices_buffer"}, {"owned", false}}, rank);
  }
  const Result result = judge_named("owned-resources", t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].count, 1u);  // layers, not ranks
  EXPECT_EQ(result.findings[0].rank, -1);
  EXPECT_EQ(result.findings[0].layer_kind, "swaonly");  // from the layer's own event
  EXPECT_EQ(result.findings[0].detail["same_layers"], (json{43, 44, 45}));
}

TEST(OwnedResources, AClaimAgainstTheLayersListIsABreak) {
  TraceBuilder t;
  t.hello().layer(0, "swaonly", "target", {"swa_cache"});
  t.add("requires", {{"layer", 0}, {"resource", "indexer"}, {"owned", true}});
  EXPECT_EQ(judge_named("owned-resources", t).state, State::kBroken);
  TraceBuilder denied;  // and the other way round
  denied.hello().layer(0, "swaonly", "target", {"indexer"});
  denied.add("requires", {{"layer", 0}, {"resource", "indexer"}, {"owned", false}});
  EXPECT_EQ(judge_named("owned-resources", denied).state, State::kBroken);
}

TEST(OwnedResources, MissingLayersAndWildNumbers) {
  TraceBuilder t;
  t.hello();
  t.add("requires", {{"layer", 99}, {"resource", "indexer"}});
  t.add("requires", {{"layer", -1}, {"resource", "eager_scratch"}});  // the engine's own
  t.add("requires", {{"layer", 9e18}, {"resource", "x"}, {"owned", false}});
  const Result result = judge_named("owned-resources", t);
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_EQ(result.findings[0].seen, "the layer was never announced");
  EXPECT_EQ(result.findings[1].layer, -1);
}

TEST(OwnedResources, NotObserved) {
  TraceBuilder t;
  t.hello(0, {"layer"});
  EXPECT_EQ(judge_named("owned-resources", t).missing, std::vector<std::string>{"requires"});
}

TEST(WorkspaceFits, KeptAtTheVeryByte) {
  EXPECT_EQ(judge_named("workspace-fits", good_end()).state, State::kKept);
}

TEST(WorkspaceFits, EachKindAlone) {
  TraceBuilder t;
  t.hello().begin("profile").workspace("c4a", 9000, 9000, "profile");
  t.workspace("c128a", 1024, 9000, "profile").end("profile").begin("serve");
  t.workspace("c128a", 1280, 9000, "serve").workspace("c4a", 9000, 9000, "serve");
  const Result result = judge_named("workspace-fits", t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "workspace/c128a/attention");
  EXPECT_EQ(result.findings[0].detail["reserved_bytes"], 1024);
  EXPECT_EQ(result.findings[0].detail["asked_bytes"], 1280);
}

// The indexer's reservation holds its top-k's scratch: one promise for a kind, whoever of it asks.
TEST(WorkspaceFits, AConsumerMayLiveOnWhatItsKindReserved) {
  const auto run = [](std::int64_t topk) {
    TraceBuilder t;
    const auto ask = [&](const char* consumer, std::int64_t bytes, const char* phase) {
      t.add("workspace", {{"layer", 2},
                          {"layer_kind", "c4a"},
                          {"role", "target"},
                          {"phase", phase},
                          {"consumer", consumer},
                          {"requested", bytes},
                          {"capacity", 1 << 20},
                          {"grew", false},
                          {"locked", false}});
    };
    t.hello().begin("profile");
    ask("indexer", 9000, "profile");
    t.end("profile").begin("serve");
    ask("topk", topk, "serve");
    return judge_named("workspace-fits", t);
  };
  const Result fits = run(9000);
  EXPECT_EQ(fits.state, State::kKept);
  ASSERT_EQ(fits.notes.size(), 1u);
  EXPECT_EQ(fits.notes[0].key, "workspace/c4a/topk");
  EXPECT_NE(fits.notes[0].message.find("within the 9000 that indexer reserved"), std::string::npos);
  const Result beyond = run(9001);
  ASSERT_EQ(beyond.findings.size(), 1u);
  EXPECT_EQ(beyond.findings[0].key, "workspace/c4a/topk");
  EXPECT_TRUE(beyond.notes.empty());
}

TEST(WorkspaceFits, NeverReserved) {
  TraceBuilder t;
  t.hello().begin("serve").workspace("swaonly", 1, 4096, "serve");
  EXPECT_EQ(judge_named("workspace-fits", t).findings.at(0).key, "workspace/swaonly/attention");
}

TEST(WorkspaceFits, GrowthAfterReadyOrLock) {
  TraceBuilder t = good_run();
  t.workspace("c4a", 4096, 8192, "serve", true);
  EXPECT_EQ(judge_named("workspace-fits", t).findings.at(0).seen,
            "the workspace grew and its base moved");
  TraceBuilder locked;
  locked.hello().begin("warmup").workspace("c4a", 8192, 4096, "warmup", false, true);
  const Result result = judge_named("workspace-fits", locked);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].phase, "warmup");
  TraceBuilder early;  // growth before ready is what start-up is for
  early.hello().begin("profile").workspace("c4a", 8192, 8192, "profile", true).begin("serve");
  EXPECT_EQ(judge_named("workspace-fits", early).state, State::kNotObserved) << "nothing is served";
  early.add("step", {{"kind", "real"}, {"rows", 1}, {"phase", "serve"}});
  EXPECT_EQ(judge_named("workspace-fits", early).state, State::kKept);
}

TEST(WorkspaceFits, HugeAndNegative) {
  TraceBuilder t;
  t.hello().begin("serve");
  t.workspace("c4a", std::numeric_limits<std::int64_t>::max(), 0, "serve");
  t.workspace("c4a", std::numeric_limits<std::int64_t>::min(), 0, "serve");
  EXPECT_EQ(judge_named("workspace-fits", t).findings.size(), 1u);
}

TEST(WorkspaceFits, NotObserved) {
  TraceBuilder t;
  t.hello().begin("profile").workspace("c4a", 1, 1, "profile");
  EXPECT_EQ(judge_named("workspace-fits", t).state, State::kNotObserved);
}

TraceBuilder warmup(const std::string& status, bool ended = true) {
  TraceBuilder t;
  t.hello().begin("warmup").add("stage", {{"stage", "mhc"}, {"status", "requested"}});
  if (!status.empty()) t.add("stage", {{"stage", "mhc"}, {"status", status}});
  if (ended) t.end("warmup");
  return t;
}

TEST(WarmupComplete, Kept) {
  EXPECT_EQ(judge_named("warmup-complete", good_end()).state, State::kKept);
}

TEST(WarmupComplete, RequestedNeverDone) {
  EXPECT_EQ(judge_named("warmup-complete", warmup("")).findings.at(0).key, "mhc");
  EXPECT_EQ(judge_named("warmup-complete", warmup("failed")).findings.at(0).seen, "failed");
  EXPECT_EQ(judge_named("warmup-complete", warmup("done")).state, State::kKept);
  // Cut off in warmup: that is starts' finding.
  EXPECT_EQ(judge_named("warmup-complete", warmup("", false)).state, State::kNotObserved);
}

TEST(WarmupComplete, SkipsMustBeDeclared) {
  TraceBuilder t = warmup("");
  t.add("skip", {{"step", "mhc"}, {"reason", "absent"}, {"declared", true}});
  EXPECT_EQ(judge_named("warmup-complete", t).state, State::kKept);
  t.add("skip", {{"step", "mhc"}, {"reason", "swallowed"}, {"declared", false}});
  const Result result = judge_named("warmup-complete", t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "mhc");
  TraceBuilder mute = warmup("done");  // `declared` absent is not declared
  mute.add("skip", {{"step", "mixed step"}, {"reason", "blocks are short"}});
  EXPECT_EQ(judge_named("warmup-complete", mute).findings.at(0).seen, "skipped: blocks are short");
}

TEST(WarmupComplete, StagesThatServingReaches) {
  TraceBuilder t = good_run();
  t.launch("sparse_prefill", "", "serve", "c4a").launch("gemm", "", "serve", "swaonly");
  const Result result = judge_named("warmup-complete", t);
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_EQ(result.findings[0].key, "c4a/sparse_prefill");
  EXPECT_EQ(result.findings[1].key, "swaonly/gemm");  // another kind's launch does not count
  EXPECT_EQ(result.findings[0].phase, "serve");
}

TEST(WarmupComplete, SaysWhatItCouldNotJudge) {
  TraceBuilder t;
  t.hello(0, {"stage", "skip"}).begin("warmup").end("warmup");
  const Result result = judge_named("warmup-complete", t);
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_NE(result.why.find("no launch events"), std::string::npos);
  TraceBuilder mute;
  mute.hello(0, {"stage"}).phase("warmup");
  EXPECT_EQ(judge_named("warmup-complete", mute).missing, std::vector<std::string>{"skip"});
}

}  // namespace
}  // namespace warmgate::contract
