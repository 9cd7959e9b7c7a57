#include <gtest/gtest.h>

#include <limits>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kSame = std::int64_t{2} << 20;  // as much more counts as the same

struct Memory : TraceBuilder {
  explicit Memory(int world = 1) : TraceBuilder(world) {
    for (int rank = 0; rank < world; ++rank) hello(rank);
  }
  /// A phase with `step` bytes above the `lasting` ones at its end.
  Memory& of(const std::string& phase, std::int64_t lasting, std::int64_t step, int rank = 0) {
    begin(phase, rank);
    if (phase == "serve") add("step", {{"kind", "real"}, {"rows", 1}, {"phase", phase}}, rank);
    add("phase_end",
        {{"phase", phase},
         {"status", "ok"},
         {"peak_bytes", lasting + step},
         {"persistent_bytes", lasting},
         {"transient_peak_bytes", step}},
        rank);
    return *this;
  }
  Result judged() { return judge_named("memory-covers", *this); }
};

TEST(MemoryCovers, KeptAtTheVeryByte) {
  Memory t;
  t.of("load", 100, 0).of("profile", 150, 40).of("kv", 900, 0).of("serve", 900, 40 + kSame);
  EXPECT_EQ(t.judged().state, State::kKept) << t.judged().why;
}

TEST(MemoryCovers, NothingServedHasShownNothing) {
  Memory t;
  t.of("load", 100, 0).of("profile", 150, 40).of("kv", 900, 0).begin("serve");
  t.add("phase_end",
        {{"phase", "serve"}, {"status", "ok"}, {"peak_bytes", 900}, {"persistent_bytes", 900}});
  EXPECT_EQ(t.judged().state, State::kNotObserved);
  EXPECT_NE(t.judged().why.find("nothing was served"), std::string::npos) << t.judged().why;
}

TEST(MemoryCovers, ServingMayNotTakeMoreThanProfilingMeasured) {
  Memory t;
  t.of("load", 100, 0).of("profile", 150, 40).of("kv", 900, 0).of("serve", 900, 41 + kSame);
  const Result result = t.judged();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "peak");
  EXPECT_EQ(result.findings[0].phase, "serve");
  EXPECT_EQ(result.findings[0].seen, "2097193 bytes in serve");
  EXPECT_EQ(result.findings[0].events.size(), 2u);
}

TEST(MemoryCovers, WhatServingAddsForGoodIsItsOwn) {
  Memory t;  // a workspace that grows in serve lasts from then on
  t.of("profile", 150, 40).of("kv", 900, 0).of("serve", 930 + kSame, 20);
  EXPECT_EQ(t.judged().findings.at(0).seen, "2097202 bytes in serve");
}

TEST(MemoryCovers, ALargerWarmupIsANote) {
  Memory t;
  t.of("profile", 150, 40).of("kv", 900, 0).of("warmup", 900, 41 + kSame).of("serve", 900, 10);
  const Result result = t.judged();
  EXPECT_EQ(result.state, State::kKept);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(result.notes[0].key, "start-up");
  EXPECT_EQ(result.notes[0].phase, "warmup");
}

TEST(MemoryCovers, AbsurdlyMoreIsCapacityLost) {
  Memory kept;
  kept.of("profile", 0, 2 * kGiB + kGiB).of("kv", 0, 0).of("serve", 0, kGiB);
  EXPECT_EQ(kept.judged().state, State::kKept);  // twice and 1 GiB, to the byte
  Memory absurd;
  absurd.of("profile", 0, 3 * kGiB + 1).of("kv", 0, 0).of("serve", 0, kGiB);
  EXPECT_EQ(absurd.judged().findings.at(0).key, "absurd");
  Memory warmed;  // what warmup takes is a use too
  warmed.of("profile", 0, 9 * kGiB).of("kv", 0, 0).of("warmup", 0, 4 * kGiB).of("serve", 0, 1);
  EXPECT_EQ(warmed.judged().state, State::kKept);
}

TEST(MemoryCovers, TheBudgetThatTheCacheWasSizedWithin) {
  for (const std::int64_t peak : {1000 + kSame, 1001 + kSame}) {
    Memory t;
    t.of("profile", 150, 3 * kSame).begin("kv");
    t.add("kv", {{"bytes", 700},
                 {"blocks", 7},
                 {"tokens", 70},
                 {"concurrency", 1.0},
                 {"budget_bytes", 1000}});
    t.of("kv", 980, 0).of("serve", 980, peak - 980);
    const Result result = t.judged();
    if (peak == 1000 + kSame) {
      EXPECT_EQ(result.state, State::kKept);
      continue;
    }
    ASSERT_EQ(result.findings.size(), 1u);
    EXPECT_EQ(result.findings[0].key, "budget");
  }
}

TEST(MemoryCovers, EachRankAlone) {
  Memory t(2);
  for (int rank : {0, 1}) {
    t.of("profile", 10, 5, rank).of("kv", 50, 0, rank).of("serve", 50, 5 + kSame + rank, rank);
  }
  const Result result = t.judged();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rank, 1);
}

TEST(MemoryCovers, NotObserved) {
  EXPECT_EQ(judge_named("memory-covers", good_end()).state, State::kNotObserved);
  Memory cut;
  cut.of("profile", 150, 40).of("kv", 900, 0).of("warmup", 900, 1);
  EXPECT_EQ(cut.judged().state, State::kNotObserved);
  EXPECT_NE(cut.judged().why.find("before serving"), std::string::npos);
  TraceBuilder mute;
  mute.hello(0, {"step"});
  EXPECT_EQ(judge_named("memory-covers", mute).missing, std::vector<std::string>{"phase_end"});
}

TEST(MemoryCovers, WildNumbers) {
  using Limit = std::numeric_limits<std::int64_t>;
  Memory t;
  t.begin("profile");
  t.add("phase_end", {{"phase", "profile"},
                      {"status", "ok"},
                      {"peak_bytes", Limit::max()},
                      {"persistent_bytes", Limit::min()}});
  t.of("kv", -5, 0).of("serve", Limit::min(), 0);
  EXPECT_NE(t.judged().state, State::kNotObserved);
}

}  // namespace
}  // namespace warmgate::contract
