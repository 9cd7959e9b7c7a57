#include <gtest/gtest.h>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

constexpr const char* kKey = "ComputePrefillMetadata{BLOCK_SIZE=2}";

struct Starts : TraceBuilder {
  explicit Starts(int world = 2) : TraceBuilder(world) {
    for (int rank = 0; rank < world; ++rank) hello(rank).begin("warmup", rank);
  }
  Starts& got(const std::string& source, int rank = 0, bool rebuilt = false,
              const json& cache = "disk", const std::string& key = kKey) {
    json body = {{"kernel", "ComputePrefillMetadata"},
                 {"key", key},
                 {"arch", "sm_90a"},
                 {"source", source},
                 {"status", "ok"},
                 {"phase", "warmup"}};
    if (!cache.is_null()) body["cache"] = cache;
    if (rebuilt) body["rebuilt"] = true;
    add("compile", std::move(body), rank);
    return *this;
  }
  Starts& after(int starts) {
    add("store", {{"store", "kernels"}, {"path", "/c"}, {"status", "filled"}, {"starts", starts}},
        0, "harness");
    return *this;
  }
  Result judged() { return judge_named("cache-sound", *this); }
};

TEST(CacheSound, OneCompilationForAllRanksIsKept) {
  Starts t;
  const Result result = t.got("compiler", 0).got("disk", 1).judged();
  EXPECT_EQ(result.state, State::kKept) << result.why;
  EXPECT_NE(result.why.find("1 key compiled, 1 found"), std::string::npos) << result.why;
}

TEST(CacheSound, TwoRanksThatCompileTheSameKeyBreakIt) {
  Starts t;
  const Result result =
      t.got("compiler", 0)
          .got("compiler", 1)
          .got("compiler", 0, false, "disk", "ComputePrefillMetadata{BLOCK_SIZE=4}")
          .got("compiler", 1, false, "disk", "ComputePrefillMetadata{BLOCK_SIZE=4}")
          .judged();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "twice/ComputePrefillMetadata");
  EXPECT_EQ(result.findings[0].count, 2u);
  EXPECT_EQ(result.findings[0].phase, "warmup");
  EXPECT_EQ(result.findings[0].events.size(), 4u);
}

TEST(CacheSound, ALaterStartCompilesNothing) {
  Starts first(1), later(1), warm(1);
  EXPECT_EQ(first.got("compiler").judged().state, State::kKept);
  const Result result = later.got("compiler").after(2).judged();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "anew/ComputePrefillMetadata");
  EXPECT_EQ(result.findings[0].seen, "compiled at start 3");
  EXPECT_EQ(warm.got("disk").after(1).judged().state, State::kKept);
}

TEST(CacheSound, DamageIsMendedOnce) {
  Starts once(2), never(2);
  const Result kept = once.got("compiler", 0, true).got("disk", 1).after(1).judged();
  EXPECT_EQ(kept.state, State::kKept) << kept.why;
  EXPECT_NE(kept.why.find("1 damaged and mended"), std::string::npos) << kept.why;
  const Result broken = never.got("compiler", 0, true).got("compiler", 1, true).judged();
  ASSERT_EQ(broken.state, State::kBroken);
  EXPECT_EQ(broken.findings[0].key, "damaged/ComputePrefillMetadata");
}

TEST(CacheSound, WhatSaysNothingOfACacheIsNotJudged) {
  Starts none(1), unsaid(1), nothing(1), ours(1);
  EXPECT_EQ(none.got("compiler", 0, false, "none").judged().state, State::kNotApplicable);
  EXPECT_EQ(unsaid.got("compiler", 0, false, nullptr).judged().state, State::kNotObserved);
  EXPECT_EQ(nothing.judged().state, State::kNotApplicable);
  // What the harness compiles to judge keys went through no cache of the engine's.
  ours.add("compile", {{"key", kKey}, {"source", "compiler"}, {"cache", "disk"}}, 0, "harness");
  EXPECT_EQ(ours.judged().state, State::kNotApplicable);
}

TEST(CacheSound, WhatCouldNotBeKeptIsNobodysFault) {
  Starts t(2);
  t.got("compiler", 0, false, "unwritable").got("compiler", 1, false, "unwritable").after(1);
  const Result result = t.judged();
  EXPECT_EQ(result.state, State::kNotObserved);
  EXPECT_NE(result.why.find("lock"), std::string::npos) << result.why;
}

TEST(CacheSound, ClaimsOfAnyKindAreSurvived) {
  Starts t(1);
  t.add("compile", {{"cache", "disk"}, {"source", "compiler"}, {"rebuilt", "yes"}, {"key", 7}});
  t.add("store", {{"status", "filled"}, {"starts", "many"}}, 0, "harness");
  EXPECT_EQ(t.judged().state, State::kKept);
}

}  // namespace
}  // namespace warmgate::contract
