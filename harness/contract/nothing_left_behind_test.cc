// The engine's own state, before and after.
#include <gtest/gtest.h>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

struct States : TraceBuilder {
  States() { hello().begin("warmup"); }
  States& state(const std::string& at, json more, int rank = 0) {
    more["at"] = at;
    if (!more.contains("keeps")) more["keeps"] = {"free_blocks", "held_tokens", "null_block"};
    add("state", more, rank);
    return *this;
  }
  Result judged() {
    exited();
    return judge_named("nothing-left-behind", *this);
  }
};

TEST(EngineState, KeptWhereItIsAsBefore) {
  States t;
  for (const char* at : {"before warmup", "after warmup", "after serve"})
    t.state(at, {{"free_blocks", 9}, {"held_tokens", 0}, {"null_block", "00ff"}, {"step", at}});
  const Result result = t.judged();
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_EQ(result.why, "");
}

TEST(GpuMemory, BackOrLeft) {
  States back, left;
  back.state("before warmup", {{"free_blocks", 9}});
  back.add("gpu_memory", {{"path", "GPU-a"}, {"before", 1 << 20}, {"after", 3 << 20}}, 0,
           "harness");
  const Result kept = back.judged();
  EXPECT_EQ(kept.state, State::kKept);
  EXPECT_EQ(kept.why, "memory of GPU-a: 1 MiB in use before, 3 after");
  left.add("leftover", {{"what", "gpu_memory"}, {"path", "GPU-a"}, {"bytes", 300 << 20}}, 0,
           "harness");
  const Result broken = left.judged();
  ASSERT_EQ(broken.findings.size(), 1u);
  EXPECT_EQ(broken.findings[0].key, "gpu_memory");
  EXPECT_EQ(broken.findings[0].seen, "300 MiB of GPU-a did not come back");
}

TEST(EngineState, EachFieldThatHasToComeBack) {
  States t;
  t.state("before warmup", {{"free_blocks", 9}, {"held_tokens", 0}, {"null_block", "00"}});
  t.state("after warmup", {{"free_blocks", 8}, {"held_tokens", 3}, {"null_block", "ff"}});
  const Result result = t.judged();
  ASSERT_EQ(result.findings.size(), 3u);
  EXPECT_EQ(result.findings[0].key, "state/free_blocks");
  EXPECT_EQ(result.findings[0].expected, "9 before warmup");
  EXPECT_EQ(result.findings[0].seen, "8 after warmup");
  EXPECT_EQ(result.findings[0].events, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(result.findings[2].key, "state/null_block");
}

TEST(EngineState, OnlyWhatIsDeclared) {
  States t;
  t.state("before warmup", {{"rng", 1}, {"lengths", 2}, {"keeps", json::array()}});
  t.state("after warmup", {{"rng", 5}, {"lengths", 2}, {"keeps", {"lengths", "unknown"}}});
  EXPECT_EQ(t.judged().state, State::kKept);
  States gone;
  gone.state("before warmup", {{"rng", 1}});
  gone.state("after warmup", {{"keeps", {"rng"}}});
  EXPECT_EQ(gone.judged().findings.at(0).seen, "nothing after warmup");
}

TEST(EngineState, AlwaysAgainstTheFirstAndARankAlone) {
  States t;
  t.state("a", {{"free_blocks", 9}}, 0).state("a", {{"free_blocks", 7}}, 1);
  t.state("b", {{"free_blocks", 9}}, 0).state("b", {{"free_blocks", 7}}, 1);
  EXPECT_EQ(States(t).judged().state, State::kKept);
  t.state("c", {{"free_blocks", 8}}, 1).state("d", {{"free_blocks", 7}}, 1);
  const Result result = t.judged();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rank, 1);
}

TEST(EngineState, NoNaNEver) {
  States t;
  t.state("before warmup", {{"kv_nan", 0}}).state("after warmup", {{"kv_nan", 2}});
  EXPECT_EQ(t.judged().findings.at(0).key, "state/kv_nan");
}

TEST(EngineState, AnEngineThatTellsNothingIsNotAcquitted) {
  TraceBuilder t = good_end();
  const Result result = judge_named("nothing-left-behind", t);
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_NE(result.why.find("state was not told"), std::string::npos);
}

}  // namespace
}  // namespace warmgate::contract
