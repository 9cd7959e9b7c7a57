#include <gtest/gtest.h>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

struct Launches : TraceBuilder {
  explicit Launches(int world = 1) : TraceBuilder(world) {
    for (int rank = 0; rank < world; ++rank) hello(rank);
  }
  Launches& of(const std::string& phase, const std::string& signature,
               const std::string& kind = "c4a", int rank = 0, const std::string& kernel = "gemm",
               const std::string& key = "") {
    add("launch",
        {{"kernel", kernel},
         {"key", key},
         {"layer_kind", kind},
         {"role", "target"},
         {"phase", phase},
         {"layer", 3},
         {"signature", signature}},
        rank);
    return *this;
  }
  Result judged() { return judge_named("signatures-match", *this); }
};

TEST(SignaturesMatch, KeptWhereEachWasSeenBeforeReady) {
  Launches t;
  t.of("profile", "bf16[2]T,any").of("warmup", "bf16[2]T,one").of("capture", "bf16[2]T,div16");
  t.of("serve", "bf16[2]T,div16").of("serve", "bf16[2]T,one").of("serve", "bf16[2]T,any");
  EXPECT_EQ(t.judged().state, State::kKept);
}

TEST(SignaturesMatch, TheNearestOneSaysWhatDiffers) {
  Launches t;
  t.of("warmup", "fp32[1]T,i64[2]T,any").of("warmup", "bf16[2]T,i64[2]T,div16");
  t.of("serve", "bf16[2]T,i32[2]T,div16");
  const Result result = t.judged();
  ASSERT_EQ(result.findings.size(), 1u);
  const Finding& f = result.findings[0];
  EXPECT_EQ(f.key, "c4a/gemm");
  EXPECT_EQ(f.phase, "serve");
  EXPECT_EQ(f.layer_kind, "c4a");
  EXPECT_EQ(f.layer, 3);
  EXPECT_NE(f.message.find("argument 2 is i32[2]T, was i64[2]T"), std::string::npos) << f.message;
  EXPECT_EQ(f.message.find("argument 1"), std::string::npos) << f.message;
  EXPECT_EQ(f.events.size(), 2u);
}

TEST(SignaturesMatch, EveryPartOfAnArgumentCounts) {
  for (const char* served : {"fp32[2]T,any", "bf16[3]T,any", "bf16[2]F,any", "bf16[2]T,one",
                             "bf16[2]T", "bf16[2]T,any,any"}) {
    Launches t;
    t.of("warmup", "bf16[2]T,any").of("serve", served);
    EXPECT_EQ(t.judged().state, State::kBroken) << served;
  }
}

TEST(SignaturesMatch, AnotherKindsOrRanksLaunchDoesNotCount) {
  Launches kind;
  kind.of("warmup", "bf16[2]T", "swaonly").of("warmup", "bf16[2]F", "c4a");
  kind.of("serve", "bf16[2]T", "c4a");
  EXPECT_EQ(kind.judged().state, State::kBroken);
  Launches rank(2);
  rank.of("warmup", "bf16[2]T", "c4a", 0).of("warmup", "bf16[2]F", "c4a", 1);
  rank.of("serve", "bf16[2]T", "c4a", 0).of("serve", "bf16[2]T", "c4a", 1);
  const Result result = rank.judged();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rank, 1);
}

TEST(SignaturesMatch, WhatWasNeverLaunchedBeforeIsAnotherContractsFinding) {
  Launches t;
  t.of("warmup", "bf16[2]T").of("serve", "bf16[2]T").of("serve", "i32[1]T", "c4a", 0, "late");
  const Result result = t.judged();
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_NE(result.why.find("1 kernel first launched in serve"), std::string::npos) << result.why;
  Launches only;
  only.of("serve", "i32[1]T", "c4a", 0, "late");
  EXPECT_EQ(only.judged().state, State::kNotObserved);
}

TEST(SignaturesMatch, KeysAreKernelsOfTheirOwn) {
  Launches t;
  t.of("warmup", "i32/one", "", 0, "K", "K{A=one}").of("warmup", "i32/any", "", 0, "K", "K{A=any}");
  t.of("serve", "i32/any", "", 0, "K", "K{A=one}");
  const Result result = t.judged();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "engine/K{A=one}");
}

TEST(SignaturesMatch, NotObserved) {
  EXPECT_EQ(judge_named("signatures-match", good_end()).state, State::kNotObserved);  // no texts
  TraceBuilder mute;
  mute.hello(0, {"step"});
  EXPECT_EQ(judge_named("signatures-match", mute).missing, std::vector<std::string>{"launch"});
  TraceBuilder short_run;
  short_run.hello().launch("gemm", "", "warmup");
  EXPECT_EQ(judge_named("signatures-match", short_run).state, State::kNotObserved);
}

TEST(SignaturesMatch, OddTextsHarmNobody) {
  Launches t;
  t.of("warmup", ",,,").of("serve", ",").of("serve", std::string(5000, ','));
  EXPECT_EQ(t.judged().state, State::kBroken);
}

}  // namespace
}  // namespace warmgate::contract
