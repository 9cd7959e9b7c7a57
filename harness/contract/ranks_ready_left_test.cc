// ready-honest, ranks-agree, nothing-left-behind.
#include <gtest/gtest.h>

#include <limits>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

TEST(ReadyHonest, Kept) { EXPECT_EQ(judge_named("ready-honest", good_end()).state, State::kKept); }

TEST(ReadyHonest, TooEarly) {
  TraceBuilder t;
  t.hello().phase("load").ready().phase("warmup").bye().exited();
  const Result result = judge_named("ready-honest", t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "warmup");
  EXPECT_EQ(result.findings[0].seen, "ready before warmup began");
  TraceBuilder within;
  within.hello().begin("warmup").add("ready", {{"clock", "health"}}).end("warmup");
  EXPECT_EQ(judge_named("ready-honest", within).findings.at(0).seen, "ready before warmup ended");
  TraceBuilder open;
  open.hello().begin("load").add("ready", {{"clock", "process"}});
  EXPECT_EQ(judge_named("ready-honest", open).findings.at(0).seen, "ready, and load never ended");
}

TEST(ReadyHonest, OnAnyRank) {
  TraceBuilder t(2);  // rank 1 says nothing of ready: rank 0 spoke for it
  t.hello(0).hello(1).begin("warmup", 0).begin("warmup", 1).end("warmup", 0).ready(0);
  t.end("warmup", 1);
  const Result result = judge_named("ready-honest", t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rank, 1);
  TraceBuilder each(2);  // a rank that speaks for itself is judged by its own word
  each.hello(0).hello(1).begin("warmup", 0).begin("warmup", 1).end("warmup", 0).ready(0);
  each.end("warmup", 1).ready(1);
  EXPECT_EQ(judge_named("ready-honest", each).state, State::kKept);
}

TEST(ReadyHonest, WarmupWorkAfterReady) {
  TraceBuilder t = good_run();
  t.add("stage", {{"stage", "autotune"}, {"status", "done"}});
  t.add("step", {{"id", 1}, {"kind", "dummy"}, {"rows", 1}, {"requests", 1}});
  const Result result = judge_named("ready-honest", t);
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_EQ(result.findings[0].key, "stage autotune");
  EXPECT_EQ(result.findings[1].key, "dummy step");
}

TEST(ReadyHonest, WhatAProbeSeesIsHeldAgainstTheLastRankThatIsReady) {
  TraceBuilder t(2);
  t.hello(0).hello(1).ready(0);
  t.add("capture", {{"graph", "0x1"}}, 0, "python");
  t.trace().events.back().rank.reset();  // of rank 1's process, which a probe cannot know
  t.ready(1);
  EXPECT_EQ(judge_named("ready-honest", t).state, State::kKept);
  t.add("capture", {{"graph", "0x2"}}, 0, "probe");
  t.trace().events.back().rank.reset();
  EXPECT_EQ(judge_named("ready-honest", t).state, State::kBroken);
}

TEST(ReadyHonest, TimesThatCannotBeOrderedProveNothing) {
  TraceBuilder t;
  t.hello().begin("warmup").add("ready", {{"clock", "port"}}).end("warmup");
  for (auto& e : t.trace().events)
    if (e.ev == "ready") e.res_ns = 1'000'000'000;  // a polled clock
  EXPECT_EQ(judge_named("ready-honest", t).state, State::kKept);
}

TEST(ReadyHonest, OtherClocksAndNoReady) {
  TraceBuilder t;
  t.hello().begin("warmup").add("ready", {{"clock", "capture"}}).end("warmup");
  EXPECT_EQ(judge_named("ready-honest", t).state, State::kNotObserved);
  TraceBuilder mute;
  mute.hello(0, {"phase_begin", "phase_end"});
  EXPECT_EQ(judge_named("ready-honest", mute).missing, std::vector<std::string>{"ready"});
}

TraceBuilder& collective(TraceBuilder& t, int rank, const std::string& kind, std::int64_t bytes,
                         std::int64_t count = 1) {
  return t.add(
      "collective",
      {{"communicator", "tp"}, {"kind", kind}, {"bytes", bytes}, {"seq", 0}, {"count", count}},
      rank);
}

TEST(RanksAgree, OneRankHasNobodyToAgreeWith) {
  EXPECT_EQ(judge_named("ranks-agree", good_end()).state, State::kNotApplicable);
}

TEST(RanksAgree, RunsMayBeCutDifferently) {
  TraceBuilder t(2);
  t.hello(0).hello(1);
  collective(t, 0, "all_reduce", 8, 5);
  collective(t, 1, "all_reduce", 8, 2);
  collective(t, 1, "all_reduce", 8, 3);
  collective(t, 0, "all_gather", 4);
  collective(t, 1, "all_gather", 4);
  t.bye(0).bye(1).exited(0).exited(1);
  EXPECT_EQ(judge_named("ranks-agree", t).state, State::kKept);
}

TEST(RanksAgree, NamesTheFirstDivergence) {
  TraceBuilder t(2);
  t.hello(0).hello(1).begin("warmup", 0).begin("warmup", 1);
  collective(t, 0, "all_reduce", 8, 5);
  collective(t, 1, "all_reduce", 8, 4);
  collective(t, 1, "all_gather", 8, 1);
  const Result result = judge_named("ranks-agree", t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "tp/order");
  EXPECT_EQ(result.findings[0].detail["position"], 4);
  EXPECT_EQ(result.findings[0].seen, "all_gather of 8 bytes");
  EXPECT_EQ(result.findings[0].phase, "warmup");
}

TEST(RanksAgree, AShorterOrderCountsOnlyIfBothEndedProperly) {
  TraceBuilder t(2);
  t.hello(0).hello(1);
  collective(t, 0, "all_reduce", 8, 5);
  collective(t, 1, "all_reduce", 8, 4);
  EXPECT_EQ(judge_named("ranks-agree", t).state, State::kKept);
  t.bye(0).bye(1);
  EXPECT_EQ(judge_named("ranks-agree", t).findings.at(0).seen, "nothing more");
}

TEST(RanksAgree, ClaimsOfManyOperationsCostNothing) {
  TraceBuilder t(2);
  t.hello(0).hello(1);
  for (int rank : {0, 1})
    for (int i = 0; i < 3; ++i)
      collective(t, rank, "all_reduce", 8, std::numeric_limits<std::int64_t>::max());
  collective(t, 0, "all_reduce", -8, -5);
  t.bye(0).bye(1);
  EXPECT_EQ(judge_named("ranks-agree", t).state, State::kBroken);
}

TEST(RanksAgree, AFailureEndsAllSoonAndIsNamed) {
  TraceBuilder t(2);
  t.hello(0).hello(1);
  collective(t, 0, "all_reduce", 8);
  t.fault("RuntimeError", "boom", 1).exited(1, 1);
  t.fault("CollectiveError", "rank 1 failed", 0, {{"kind", "peer_failed"}}).exited(0, 1);
  EXPECT_EQ(judge_named("ranks-agree", t).state, State::kKept);

  TraceBuilder unnamed(12);
  unnamed.hello(0).hello(1);
  collective(unnamed, 0, "all_reduce", 8);
  unnamed.fault("RuntimeError", "boom", 1).exited(1, 1);
  unnamed.fault("CollectiveError", "rank 11 or so", 0, {{"kind", "peer_failed"}}).exited(0, 1);
  EXPECT_EQ(judge_named("ranks-agree", unnamed).findings.at(0).key, "failure/unnamed");

  TraceBuilder slow(2);
  slow.hello(0).hello(1);
  collective(slow, 0, "all_reduce", 8);
  slow.fault("RuntimeError", "boom", 1).exited(1, 1).at(60'000).exited(0, 1, true);
  EXPECT_EQ(judge_named("ranks-agree", slow).findings.at(0).key, "failure/slow");
}

TEST(RanksAgree, NotObserved) {
  TraceBuilder t(2);
  t.hello(0, {"phase_begin"}).hello(1, {"phase_begin"});
  EXPECT_EQ(judge_named("ranks-agree", t).missing, std::vector<std::string>{"collective"});
}

TEST(NothingLeftBehind, AStopCommandThatDidNotRunIsToldAndOneThatFoundNothingIsANote) {
  const auto judged = [](json body) {
    return judge_named("nothing-left-behind",
                       TraceBuilder().hello().add("stop", std::move(body), 0, "harness").exited());
  };
  EXPECT_EQ(judged({{"exit_code", 0}}).state, State::kKept);
  EXPECT_TRUE(judged({{"exit_code", 0}}).notes.empty());
  const Result missing = judged({{"error", "nosuchprog: No such file or directory"}});
  ASSERT_EQ(missing.findings.size(), 1u);
  EXPECT_EQ(missing.findings[0].key, "stop");
  EXPECT_EQ(judged({{"timed_out", true}}).findings.size(), 1u);
  EXPECT_EQ(judged({{"signal", 11}}).findings.size(), 1u);
  EXPECT_TRUE(judged({{"exit_code", 1}}).findings.empty());
  EXPECT_EQ(judged({{"exit_code", 1}}).notes.size(), 1u);
}

TEST(NothingLeftBehind, KeptBrokenNotObserved) {
  EXPECT_EQ(judge_named("nothing-left-behind", good_end()).state, State::kKept);
  TraceBuilder t = good_end();
  t.add("leftover", {{"what", "process"}, {"pid", 4711}, {"cmd", "/opt/x/helper --fd 9"}}, 0,
        "harness");
  t.add("leftover", {{"what", "file"}, {"path", "/dev/shm/wg-lock"}}, 0, "harness");
  const Result result = judge_named("nothing-left-behind", t);
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_EQ(result.findings[0].key, "process/helper");  // no pid: `allow` must match it tomorrow
  EXPECT_EQ(result.findings[1].key, "file/wg-lock");
  TraceBuilder unwatched = good_run();
  EXPECT_EQ(judge_named("nothing-left-behind", unwatched).state, State::kNotObserved);
}

TEST(NothingLeftBehind, PortsAndSharedMemory) {
  TraceBuilder t = good_end();
  t.add("leftover", {{"what", "port"}, {"port", "127.0.0.1:8000"}, {"pid", 9}, {"cmd", "/x/serve"}},
        0, "harness");
  t.add("leftover", {{"what", "shm"}, {"path", "/dev/shm/torch_4711_2"}, {"of_run", true}}, 0,
        "harness");
  t.add("leftover",
        {{"what", "shm"}, {"path", "/dev/shm/psm_ab"}, {"of_run", false}, {"why", "who knows"}}, 0,
        "harness");
  const Result result = judge_named("nothing-left-behind", t);
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_EQ(result.findings[0].key, "port/serve");
  EXPECT_NE(result.findings[0].message.find("listens on 127.0.0.1:8000"), std::string::npos);
  EXPECT_EQ(result.findings[1].key, "shm/torch_#_#");
  // What may be another's breaks nothing, but is said.
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(result.notes[0].key, "shm/psm_ab");
  EXPECT_NE(result.notes[0].message.find("who knows"), std::string::npos);
}

TEST(NothingLeftBehind, BlocksOfTheEngine) {
  TraceBuilder t;
  t.hello().begin("serve");
  t.add("phase_end",
        {{"phase", "serve"}, {"status", "ok"}, {"free_blocks", 9}, {"total_blocks", 10}});
  t.exited();
  EXPECT_EQ(judge_named("nothing-left-behind", t).findings.at(0).key, "kv_blocks");
}

}  // namespace
}  // namespace warmgate::contract
