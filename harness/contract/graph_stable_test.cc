#include <gtest/gtest.h>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

struct Graphs : TraceBuilder {
  Graphs() : TraceBuilder(1) {
    hello(0);
    begin("capture", 0);
    add("capture", {{"graph", "full/4"}, {"size", 4}, {"phase", "capture"}});
    add("phase_end", {{"phase", "capture"}, {"status", "ok"}});
    begin("serve", 0);
  }
  Graphs& replayed(double error, bool final = true) {
    add("replay", {{"graph", "full/4"},
                   {"count", 9},
                   {"compared", 2},
                   {"unequal", error > 0 ? 1 : 0},
                   {"error", error},
                   {"final", final},
                   {"phase", "serve"}});
    return *this;
  }
  Graphs& differs(const std::string& kind, const std::string& captured, const std::string& asked,
                  int layer) {
    add("replay", {{"graph", "full/4"},
                   {"differs", kind},
                   {"captured", captured},
                   {"asked", asked},
                   {"op", 17},
                   {"layer", layer},
                   {"layer_kind", "c4a"},
                   {"role", "target"},
                   {"phase", "serve"}});
    return *this;
  }
  Result judged() { return judge_named("graph-stable", *this); }
};

TEST(GraphStable, ReplaysThatGiveWhatEagerRunsGiveAreKept) {
  Graphs t;
  t.replayed(0);
  const Result result = t.judged();
  EXPECT_EQ(result.state, State::kKept) << result.why;
  EXPECT_NE(result.why.find("9 replays, 2 compared"), std::string::npos) << result.why;
}

TEST(GraphStable, RoundingIsNoDifferenceAndMoreIs) {
  Graphs at, above, no_number;
  EXPECT_EQ(at.replayed(1.0 / 128).judged().state, State::kKept);
  const Result result = above.replayed(1.0 / 127).judged();
  ASSERT_EQ(result.state, State::kBroken);
  EXPECT_EQ(result.findings[0].key, "eager");
  EXPECT_EQ(no_number.replayed(1e9).judged().state, State::kBroken);
}

TEST(GraphStable, AFrozenBranchNamesBothKernelsAndItsLayers) {
  Graphs t;
  t.differs("branch", "fill_short_context", "clear_topk", 1);
  t.differs("branch", "fill_short_context", "clear_topk", 3).replayed(0.5);
  const Result result = t.judged();
  ASSERT_EQ(result.state, State::kBroken);
  ASSERT_EQ(result.findings.size(), 2u);  // both layers in one, and what came of it
  EXPECT_EQ(result.findings[0].key, "branch/fill_short_context");
  EXPECT_NE(result.findings[0].message.find("clear_topk"), std::string::npos);
  EXPECT_EQ(result.findings[0].phase, "serve");
}

TEST(GraphStable, AStalePointerIsOneOfItsKernelWhateverTheAddress) {
  Graphs t;
  t.differs("pointer", "cooperative_topk at 0x7f00", "cooperative_topk at 0x7f80", 1);
  t.differs("pointer", "cooperative_topk at 0x7f00", "cooperative_topk at 0x8000", 3);
  const Result result = t.judged();
  ASSERT_EQ(result.state, State::kBroken);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "pointer/cooperative_topk");
  EXPECT_NE(result.findings[0].message.find("0x7f00"), std::string::npos);
}

TEST(GraphStable, CountsMayBeAnything) {
  Graphs t;
  for (const std::int64_t wild : {std::int64_t{1} << 62, std::int64_t{1} << 62, std::int64_t{-5}})
    t.add("replay", {{"graph", "g"}, {"count", wild}, {"compared", wild}, {"final", true}});
  t.add("replay", {{"graph", "g"}, {"count", "many"}, {"error", "none"}, {"final", "yes"}});
  t.add("replay", {{"graph", 7}, {"differs", ""}, {"captured", nullptr}});
  EXPECT_NE(t.judged().state, State::kNotApplicable);
}

TEST(GraphStable, NothingCapturedIsNotApplicableAndNothingReplayedNotObserved) {
  TraceBuilder none(1);
  none.hello(0);
  EXPECT_EQ(judge_named("graph-stable", none).state, State::kNotApplicable);
  EXPECT_EQ(Graphs().judged().state, State::kNotObserved);
}

TEST(GraphStable, AnErrorThatIsNoNumberIsTheWorst) {
  for (const json& error : {json("NaN"), json(nullptr), json::array(), json(-1)}) {
    Graphs t;
    t.add("replay", {{"graph", "full/4"},
                     {"count", 3},
                     {"compared", 3},
                     {"unequal", 3},
                     {"error", error},
                     {"final", true}});
    EXPECT_EQ(t.judged().state, State::kBroken) << error.dump();
  }
  Graphs absent, nothing;
  absent.add("replay", {{"graph", "full/4"}, {"count", 3}, {"compared", 3}, {"final", true}});
  EXPECT_EQ(absent.judged().state, State::kBroken);
  nothing.add("replay", {{"graph", "full/4"}, {"count", 3}, {"compared", 0}, {"final", true}});
  EXPECT_EQ(nothing.judged().state, State::kKept);
}

TEST(GraphStable, AGraphThatNobodyCapturedAndADifferenceOfAnyType) {
  Graphs unknown, odd;
  unknown.add("replay", {{"graph", "full/8"}, {"count", 1}, {"compared", 0}, {"final", true}});
  const Result result = unknown.judged();
  ASSERT_EQ(result.state, State::kBroken);
  EXPECT_EQ(result.findings[0].key, "captured");
  odd.add("replay", {{"graph", "full/4"}, {"differs", 5}, {"final", true}});
  EXPECT_EQ(odd.judged().state, State::kBroken);
}

}  // namespace
}  // namespace warmgate::contract
