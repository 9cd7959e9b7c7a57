#include <gtest/gtest.h>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

Result protocol(const trace::Trace& trace) { return judge_named("protocol", trace); }

bool has_key(const Result& result, const std::string& key) {
  for (const Finding& f : result.findings)
    if (f.key == key) return true;
  return false;
}

TEST(Protocol, KeptByAGoodRun) {
  const Result result = protocol(good_end());
  EXPECT_EQ(result.state, State::kKept) << result.findings.front().message;
}

TEST(Protocol, SilenceIsNoHello) {
  TraceBuilder t;
  t.exited();
  const Result result = protocol(t);
  ASSERT_EQ(result.state, State::kBroken);
  EXPECT_EQ(result.findings[0].key, "hello");
  // Also with no events at all.
  EXPECT_EQ(protocol(trace::Trace()).state, State::kBroken);
}

TEST(Protocol, EachRankOwesAHello) {
  TraceBuilder t(2);
  t.hello(0).bye(0).exited(0).exited(1);
  const Result result = protocol(t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rank, 1);
}

TEST(Protocol, ADeadWorkerOwesNothing) {
  TraceBuilder t;
  t.hello().begin("load").signalled(11);
  EXPECT_EQ(protocol(t).state, State::kKept);
  TraceBuilder before;
  before.exited(0, 3);  // died before hello
  EXPECT_EQ(protocol(before).state, State::kKept);
  TraceBuilder killed;
  killed.hello().begin("load");
  killed.add("deadline", {{"phase", "load"}, {"kind", "silence"}}, 0, "harness");
  killed.exited(0, 0, true);
  EXPECT_EQ(protocol(killed).state, State::kKept);
}

TEST(Protocol, OneRanksDeathDoesNotExcuseAnother) {
  TraceBuilder t(2);
  t.hello(0).begin("load", 0).hello(1).begin("load", 1).signalled(11, 1).exited(0);
  const Result result = protocol(t);
  EXPECT_TRUE(has_key(result, "bye"));
  EXPECT_TRUE(has_key(result, "end/load"));
  for (const Finding& f : result.findings) EXPECT_EQ(f.rank, 0);
}

TEST(Protocol, EndedWithZeroWithoutBye) {
  TraceBuilder t = good_run();
  t.exited();
  const Result result = protocol(t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "bye");
}

TEST(Protocol, PhaseThatNeverEnds) {
  TraceBuilder t;
  t.hello().begin("load").bye().exited();
  const Result result = protocol(t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "end/load");
  EXPECT_EQ(result.findings[0].phase, "load");
}

TEST(Protocol, EndWithoutBegin) {
  TraceBuilder t;
  t.hello().end("load").bye().exited();
  EXPECT_TRUE(has_key(protocol(t), "order/load"));
}

TEST(Protocol, OrderRepeatsAndNesting) {
  TraceBuilder order;
  order.hello().phase("kv").phase("load").bye().exited();
  ASSERT_TRUE(has_key(protocol(order), "order/load"));
  TraceBuilder twice;
  twice.hello().phase("load").phase("load").bye().exited();
  ASSERT_TRUE(has_key(protocol(twice), "order/load"));
  TraceBuilder nested;
  nested.hello().begin("load").begin("kv").end("kv").end("load").bye().exited();
  EXPECT_TRUE(has_key(protocol(nested), "order/kv"));
  TraceBuilder skipping;  // leaving phases out is legal: capture is optional
  skipping.hello().phase("load").phase("serve").bye().exited();
  EXPECT_EQ(protocol(skipping).state, State::kKept);
}

TEST(Protocol, TheTargetsOwnOrderCounts) {
  TraceBuilder t;
  t.hello().phase("kv").phase("load").bye().exited();
  t.trace().declared_phases = {"kv", "load"};
  EXPECT_EQ(protocol(t).state, State::kKept);
  t.trace().declared_phases = {"load"};
  const Result result = protocol(t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_NE(result.findings[0].message.find("does not declare"), std::string::npos);
}

TEST(Protocol, BadLinesAreOneFinding) {
  TraceBuilder t = good_end();
  for (int i = 0; i < 20; ++i) t.trace().bad_lines.push_back({"rank0", 7, "not JSON", "xx"});
  const Result result = protocol(t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "bad_lines");
  EXPECT_EQ(result.findings[0].count, 20u);
  EXPECT_EQ(result.findings[0].detail["lines"].size(), 10u);
}

TEST(Protocol, DroppedLinesAreABreak) {
  TraceBuilder t = good_run();
  t.fault("too_many_lines", "20000").bye().exited();
  EXPECT_TRUE(has_key(protocol(t), "limits"));
}

TEST(Protocol, HelloComesFirst) {
  TraceBuilder t;
  t.add("heartbeat").hello().phase("load").bye().exited();
  EXPECT_TRUE(has_key(protocol(t), "hello"));
}

TEST(Protocol, NothingAfterBye) {
  TraceBuilder t;
  t.hello().phase("load").bye().add("heartbeat").exited();
  EXPECT_TRUE(has_key(protocol(t), "bye"));
}

TEST(Protocol, TheOrderOfLinesCountsNotTheClock) {
  TraceBuilder t;
  t.at(500).hello().phase("load");
  t.at(100).phase("kv");  // a clock that jumps back
  t.bye().exited();
  t.trace().sort_by_time();
  EXPECT_EQ(protocol(t).state, State::kKept);
}

TEST(Protocol, SeveralHellosOfOneSourceNeedAsManyByes) {
  TraceBuilder t;
  t.hello().hello().phase("load").bye().exited();
  EXPECT_TRUE(has_key(protocol(t), "bye"));
  TraceBuilder ok;
  ok.hello().hello().phase("load").bye().bye().exited();
  EXPECT_EQ(protocol(ok).state, State::kKept);
}

TEST(Protocol, AWildWorldCostsNothing) {
  TraceBuilder t(2'000'000'000);
  t.hello().bye().exited();
  EXPECT_EQ(protocol(t).state, State::kBroken);
}

}  // namespace
}  // namespace warmgate::contract
