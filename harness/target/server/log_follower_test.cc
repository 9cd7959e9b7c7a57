// Logs of real engines, as they would come out of a pipe.
#include "harness/target/server/log_follower.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "harness/contract/contract.h"
#include "harness/target/test_support.h"

namespace warmgate::target {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

class Events : public EventSink {
 public:
  void add(trace::Event event) override { trace.events.push_back(std::move(event)); }
  void wake() override {}
  std::vector<const trace::Event*> of(const std::string& ev) const { return trace.of(ev); }
  trace::Trace trace;
};

class Followed : public ::testing::Test {
 protected:
  static const explain::Grammars* grammars() {
    static const explain::Grammars all =
        explain::Grammars::load(target::testing::source("fixtures/servers/log"));
    return &all;
  }
  void SetUp() override {
    if (!explain::available()) GTEST_SKIP() << explain::availability();
  }
  // The whole sample, a piece at a time, a millisecond a piece.
  std::int64_t feed(LogFollower& log, const std::string& sample) {
    std::ifstream in(target::testing::source("fixtures/logs/" + sample), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    EXPECT_FALSE(text.empty()) << sample;
    std::int64_t t = 1'000'000;
    for (std::size_t at = 0; at < text.size(); at += 97, t += 1'000'000) {
      log.feed("stdout", std::string_view(text).substr(at, 97), t);
    }
    return t;
  }
  Events events_;
};

TEST_F(Followed, AHealthyStartGoesThroughItsPhases) {
  LogFollower log(grammars(), {"server", 0, true, "vllm", 0}, events_);
  feed(log, "01-vllm-healthy-tp2-cold.log");
  log.mark_end(true);
  log.close({}, true, false);
  std::set<std::string> begun;
  std::map<std::pair<std::string, std::string>, int> open;
  for (const trace::Event& e : events_.trace.events) {
    EXPECT_EQ(e.src, "log");
    EXPECT_EQ(e.rank, 0);
    if (e.ev == "phase_begin") {
      begun.insert(e.str("phase"));
      ++open[{e.str("worker"), e.str("phase")}];
    }
    if (e.ev == "phase_end") --open[{e.str("worker"), e.str("phase")}];
    if (e.ev == "phase_begin" || e.ev == "phase_end") {
      EXPECT_EQ(e.res_ns, LogFollower::kResolution_ns);
    }
  }
  EXPECT_THAT(begun, ::testing::IsSupersetOf({"load", "profile", "kv", "capture"}));
  for (const auto& [where, count] : open) EXPECT_EQ(count, 0) << where.first << " " << where.second;
  EXPECT_GT(log.capture_end_ns(), 0);
  EXPECT_THAT(events_.of("fault"), IsEmpty());
  std::set<std::string> figures;
  for (const trace::Event* e : events_.of("counter")) figures.insert(e->str("name"));
  EXPECT_THAT(figures, ::testing::IsSupersetOf({"kv_tokens", "concurrency", "weights_bytes"}));
  ASSERT_EQ(events_.of("hello").size(), 1u);
  EXPECT_THAT(events_.trace.emits(), Contains("phase_begin"));
  EXPECT_THAT(events_.trace.emits(), Not(Contains("compile")));  // a log tells of some only
  ASSERT_EQ(events_.of("reading").size(), 1u);
  EXPECT_EQ(events_.of("reading")[0]->str("engine"), "vllm");
}

// Logs announce what begins, and nothing begins after the last capture.
TEST_F(Followed, WhatWasUpHadEndedItsStartEvenIfItFellLater) {
  const auto left_open = [this](const std::string& sample, bool started) {
    events_.trace.events.clear();
    LogFollower log(grammars(), {"server", 0, true, "vllm", 0}, events_);
    feed(log, sample);
    explain::Ending ending;
    ending.exit_code = 1;
    log.close(ending, false, started);
    std::map<std::string, int> open;
    for (const trace::Event& e : events_.trace.events) {
      if (e.ev == "phase_begin") ++open[e.str("phase")];
      if (e.ev == "phase_end") --open[e.str("phase")];
    }
    std::set<std::string> out;
    for (const auto& [phase, count] : open)
      if (count != 0) out.insert(phase);
    return out;
  };
  // It said ready itself, and then fell.
  EXPECT_THAT(left_open("01-vllm-healthy-tp2-cold.log", false), Not(Contains("capture")));
  // Up, and ended by us for what another member did.
  events_.trace.events.clear();
  LogFollower other(grammars(), {"decode", 1, false, "vllm", 0}, events_);
  feed(other, "01-vllm-healthy-tp2-cold.log");
  other.mark_end(false);
  other.close({}, true, false);
  std::map<std::string, int> left;
  for (const trace::Event& e : events_.trace.events) {
    if (e.ev == "phase_begin") ++left[e.str("phase")];
    if (e.ev == "phase_end") --left[e.str("phase")];
  }
  EXPECT_EQ(left["capture"], 0);
  // It fell while it warmed up, so what was open then never ended, whoever said ready.
  const std::set<std::string> open = left_open("04-vllm-sampler-oom-rank1.log", false);
  EXPECT_THAT(open, Contains("capture"));
  EXPECT_EQ(left_open("04-vllm-sampler-oom-rank1.log", true), open);
}

TEST_F(Followed, TheClockOfAMemberIsTakenOffTheTimesThatItPrints) {
  double at[2] = {0, 0};
  for (const int i : {0, 1}) {
    events_.trace.events.clear();
    LogFollower log(grammars(), {"decode", 2, false, "vllm", 30.0 * i}, events_);
    feed(log, "04-vllm-sampler-oom-rank1.log");
    explain::Ending ending;
    ending.exit_code = 1;
    log.close(ending, false, false);
    ASSERT_EQ(events_.of("fault").size(), 1u);
    at[i] = events_.of("fault")[0]->real("log_s");
    // Where it stands among the others' events is a matter of when it arrived here.
    EXPECT_EQ(events_.of("hello")[0]->str("times"), "arrival");
  }
  EXPECT_GT(at[0], 0);
  EXPECT_DOUBLE_EQ(at[0] - at[1], 30);
}

TEST_F(Followed, TheWorkerThatFailedFirstIsNamedWithItsFrames) {
  LogFollower log(grammars(), {"server", 0, true, "vllm", 0}, events_);
  const std::int64_t end = feed(log, "04-vllm-sampler-oom-rank1.log");
  explain::Ending ending;
  ending.exit_code = 1;
  log.close(ending, false, false);
  ASSERT_EQ(events_.of("fault").size(), 1u);
  const trace::Event& fault = *events_.of("fault")[0];
  EXPECT_EQ(fault.rank, 1);
  EXPECT_EQ(fault.str("phase"), "warmup");
  EXPECT_FALSE(fault.str("function").empty());
  EXPECT_EQ(fault.str("worker"), "rank=1");
  EXPECT_LT(fault.t_ns, end);  // when the line came, not when the log was over
}

TEST_F(Followed, ARankIsTheMembersWhereThereAreSeveral) {
  LogFollower log(grammars(), {"decode", 2, false, "vllm", 0}, events_);
  feed(log, "04-vllm-sampler-oom-rank1.log");
  explain::Ending ending;
  ending.exit_code = 1;
  log.close(ending, false, false);
  ASSERT_EQ(events_.of("fault").size(), 1u);
  EXPECT_EQ(events_.of("fault")[0]->rank, 2);
  EXPECT_EQ(events_.of("fault")[0]->str("member"), "decode");
}

TEST_F(Followed, WhatFollowsOurSignalIsNoCause) {
  LogFollower log(grammars(), {"server", 0, true, "vllm", 0}, events_);
  feed(log, "01-vllm-healthy-tp2-cold.log");
  log.mark_end(true);
  feed(log, "04-vllm-sampler-oom-rank1.log");
  log.close({}, true, false);
  EXPECT_THAT(events_.of("fault"), IsEmpty());
}

TEST_F(Followed, ALogOfNobodyClaimsNothing) {
  LogFollower log(grammars(), {"server", 0, true, "", 0}, events_);
  log.feed("stdout", "hello\nworld\n", 5);
  log.feed("stderr", std::string(100000, 'x'), 6);
  log.close({}, false, false);
  EXPECT_THAT(events_.trace.events, IsEmpty());
}

TEST_F(Followed, WithoutGrammarsNothingIsRead) {
  LogFollower log(nullptr, {"server", 0, true, "vllm", 0}, events_);
  log.feed("stdout", "x\n", 5);
  log.mark_end(true);
  log.close({}, true, false);
  EXPECT_THAT(events_.trace.events, IsEmpty());
}

}  // namespace
}  // namespace warmgate::target
