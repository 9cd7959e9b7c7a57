#include <gtest/gtest.h>

#include <limits>

#include "harness/contract/cause.h"
#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

Result starts(const trace::Trace& trace) { return judge_named("starts", trace); }

TEST(Starts, Kept) { EXPECT_EQ(starts(good_end()).state, State::kKept); }

TEST(Starts, NamesTheFaultWithItsLayerAndPhase) {
  TraceBuilder t;
  t.hello().begin("profile");
  t.fault("AssertionError", "topk_indices_buffer is None", 0,
          {{"function", "forward_mqa"},
           {"file", "flashmla.py"},
           {"line", 99},
           {"layer", 43},
           {"layer_kind", "swaonly"},
           {"role", "draft"}});
  t.end("profile", 0, "failed").exited(0, 1);
  const Result result = starts(t);
  ASSERT_EQ(result.findings.size(), 1u);
  const Finding& f = result.findings[0];
  EXPECT_EQ(f.phase, "profile");
  EXPECT_EQ(f.layer, 43);
  EXPECT_EQ(f.layer_kind, "swaonly");
  EXPECT_EQ(f.role, "draft");
  EXPECT_EQ(f.key, "AssertionError");
  EXPECT_EQ(f.detail["line"], 99);
  EXPECT_TRUE(result.notes.empty());  // the same rank's phase_end and exit are proof, no echo
}

TEST(Starts, TheFirstWorkerNotTheEcho) {
  TraceBuilder t(2);
  t.hello(0).hello(1).begin("load", 0).begin("load", 1);
  t.fault("RuntimeError", "weights are short", 1);
  t.fault("CollectiveError", "rank 1 failed", 0, {{"kind", "peer_failed"}});
  t.end("load", 0, "failed").exited(0, 1).end("load", 1, "failed").exited(1, 1);
  const Result result = starts(t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rank, 1);
  EXPECT_FALSE(result.notes.empty());
}

TEST(Starts, ASilentDeathBeatsAnEarlierEcho) {
  // Rank 0 noticed the dead peer before the harness did.
  TraceBuilder t(2);
  t.hello(0).hello(1).begin("load", 0).begin("load", 1);
  t.fault("CollectiveError", "rank 1 did not come", 0, {{"kind", "deadline"}});
  t.end("load", 0, "failed").exited(0, 1).signalled(11, 1);
  const Result result = starts(t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rank, 1);
  EXPECT_EQ(result.findings[0].key, "SIGSEGV");
}

TEST(Starts, WhatFollowsOurSignalIsNoCause) {
  TraceBuilder t;
  t.hello().begin("warmup");
  t.add("deadline", {{"phase", "warmup"}, {"kind", "deadline"}}, 0, "harness");
  t.fault("KeyboardInterrupt", "signal 15").end("warmup", 0, "failed").exited(0, 1, true);
  const Result result = starts(t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "deadline");
  EXPECT_EQ(result.findings[0].phase, "warmup");
}

TEST(Starts, ARecoveredAttemptIsNoCause) {
  TraceBuilder t;
  t.hello().begin("warmup").fault("division by zero", "swallowed").end("warmup");
  t.begin("serve").signalled(6);
  const Result result = starts(t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "SIGABRT");
  EXPECT_EQ(result.findings[0].phase, "serve");
  TraceBuilder fine;
  fine.hello().begin("warmup").fault("division by zero", "swallowed").end("warmup").ready();
  fine.bye().exited();
  EXPECT_EQ(starts(fine).state, State::kKept);
}

TEST(Starts, APhaseThatNeverEndedOrFailed) {
  TraceBuilder open;
  open.hello().begin("kv").bye().exited();
  EXPECT_EQ(starts(open).findings.at(0).phase, "kv");
  TraceBuilder failed;
  failed.hello().begin("kv").end("kv", 0, "failed").bye().exited();
  EXPECT_EQ(starts(failed).findings.at(0).key, "phase failed");
}

TEST(Starts, DiesBeforeHello) {
  TraceBuilder t;
  t.exited(0, 127);
  const Result result = starts(t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "exit 127");
}

TEST(Starts, NeverReadyThoughItWouldHaveSaidSo) {
  TraceBuilder t;
  t.hello().phase("load").bye().exited();
  EXPECT_EQ(starts(t).findings.at(0).key, "never ready");
  TraceBuilder silent;  // whoever does not speak of ready is not held to it
  silent.hello(0, {"phase_begin", "phase_end"}).phase("load").bye().exited();
  EXPECT_EQ(starts(silent).state, State::kKept);
}

TEST(Starts, NotObservedWithoutPhases) {
  TraceBuilder t;
  t.hello(0, {"counter"}).bye().exited();
  const Result result = starts(t);
  EXPECT_EQ(result.state, State::kNotObserved);
  EXPECT_EQ(result.missing, (std::vector<std::string>{"phase_begin", "phase_end"}));
  TraceBuilder none;
  none.hello().bye().exited();
  EXPECT_EQ(starts(none).findings.at(0).key, "no phase");
}

TEST(Cause, SignalNames) {
  EXPECT_EQ(signal_text(11), "SIGSEGV");
  EXPECT_EQ(signal_text(31), "SIGSYS");
  EXPECT_EQ(signal_text(64), "signal 64");
  EXPECT_EQ(signal_text(0), "signal 0");
  EXPECT_EQ(signal_text(-3), "signal -3");
  EXPECT_EQ(signal_text(std::numeric_limits<std::int64_t>::max()), "signal 9223372036854775807");
}

TEST(Cause, NoneInAGoodRun) {
  const TraceBuilder t = good_end();
  const View view{static_cast<const trace::Trace&>(t)};
  EXPECT_FALSE(first_cause(view).has_value());
}

}  // namespace
}  // namespace warmgate::contract
