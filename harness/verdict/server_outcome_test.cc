// Outcomes and figures of servers: what a log and clocks outside add.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/verdict/figures.h"
#include "harness/verdict/outcome.h"
#include "harness/verdict/test_run.h"

namespace warmgate::verdict {
namespace {

using namespace testing;
using contract::testing::TraceBuilder;
using nlohmann::json;
using ::testing::HasSubstr;

TraceBuilder server() {
  TraceBuilder t;
  t.add("hello",
        {{"schema", "events/1.0"}, {"engine", "t"}, {"pid", 100}, {"emits", {"ready", "http"}}}, 0,
        "http");
  t.add("ready", {{"clock", "process"}}, 0, "harness");
  return t;
}

TEST(ServerOutcome, AnEndWithZeroBeforeItsWorkWasDone) {
  TraceBuilder t = server();
  t.add("phase_begin", {{"phase", "load"}}, 0, "log").exited();
  RunRecord run;
  run.trace = t;
  RunFacts facts;
  facts.workers = {worker()};
  facts.ended_early = true;
  classify(facts, contract::View(run.trace), run);
  EXPECT_EQ(run.outcome, Outcome::kCrashed);
  EXPECT_EQ(run.phase, "load");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.reason, HasSubstr("ended with code 0 in load, before its work was done"));
}

TEST(ServerOutcome, TheWorkerOfTheLogIsNamed) {
  TraceBuilder t = server();
  t.add("fault",
        {{"type", "RuntimeError"},
         {"message", "no memory left"},
         {"phase", "capture"},
         {"worker", "Worker_TP1"},
         {"member", "decode"}},
        1, "log");
  t.exited(0, 1);
  RunRecord run;
  run.trace = t;
  RunFacts facts;
  facts.workers = {worker(1)};
  classify(facts, contract::View(run.trace), run);
  EXPECT_EQ(run.outcome, Outcome::kCrashed);
  EXPECT_EQ(run.first_failed_rank, 1);
  EXPECT_EQ(run.phase, "capture");
  EXPECT_THAT(run.reason, HasSubstr("rank 1 (Worker_TP1 of decode) ended with code 1 in capture"));
}

// Two workers print into one log: what the other one still does is no recovery of the first.
TEST(ServerOutcome, AFaultOfTheLogStandsThoughAnotherWorkerWentOn) {
  TraceBuilder t = server();
  t.add("phase_begin", {{"phase", "warmup"}, {"worker", "Worker_TP0"}}, 0, "log");
  t.add("fault",
        {{"type", "RuntimeError"},
         {"message", "no memory left"},
         {"phase", "warmup"},
         {"worker", "Worker_TP1"}},
        0, "log");
  t.add("phase_end", {{"phase", "warmup"}, {"status", "ok"}, {"worker", "Worker_TP0"}}, 0, "log");
  t.add("phase_begin", {{"phase", "capture"}, {"worker", "Worker_TP0"}}, 0, "log");
  t.exited(0, 1);
  RunRecord run;
  run.trace = t;
  RunFacts facts;
  facts.workers = {worker(1)};
  classify(facts, contract::View(run.trace), run);
  EXPECT_EQ(run.outcome, Outcome::kCrashed);
  EXPECT_EQ(run.phase, "warmup");
  EXPECT_THAT(run.reason, HasSubstr("(Worker_TP1) ended with code 1 in warmup"));
}

TEST(ServerOutcome, OneThatWasNeverReadyNamesTheEndpointAndItsLastAnswer) {
  const auto reason = [](const json& http) {
    TraceBuilder t = server();
    t.add("deadline", {{"phase", ""}, {"kind", "deadline"}}, 0, "harness");
    t.add("http", http, 0, "http").exited(0, 0, true);
    RunRecord run;
    run.trace = t;
    RunFacts facts;
    facts.workers = {worker()};
    facts.workers[0].killed_by_us = true;
    facts.hung = true;
    facts.hang_kind = "deadline";
    classify(facts, contract::View(run.trace), run);
    EXPECT_EQ(run.outcome, Outcome::kHung);
    return run.reason;
  };
  EXPECT_THAT(reason({{"path", "/health"},
                      {"clock", "health"},
                      {"when", "never ready"},
                      {"asked", 1234},
                      {"wanted", 200},
                      {"last", "HTTP 500"}}),
              HasSubstr("; GET /health was asked 1,234 times and never answered 200, last: "
                        "HTTP 500"));
  EXPECT_THAT(reason({{"path", ""},
                      {"clock", "port"},
                      {"when", "never ready"},
                      {"asked", 1},
                      {"port", 8000},
                      {"last", "refused"}}),
              HasSubstr("; port 8000 was tried once, last: refused"));
  // An answer of another time is no reason.
  EXPECT_THAT(reason({{"path", "/health"}, {"clock", "health"}, {"last", "HTTP 500"}}),
              ::testing::Not(HasSubstr("/health")));
}

TEST(ServerOutcome, AHangIsWhereTheLogSays) {
  TraceBuilder t = server();
  t.add("deadline", {{"phase", "capture"}, {"kind", "deadline"}}, 0, "harness");
  t.exited(0, 0, true);
  t.add("reading",
        {{"engine", "vllm"},
         {"outcome", "hung"},
         {"failing_phase", "warmup"},
         {"failing_rank", 1},
         {"failing_worker", "Worker_TP1"},
         {"silence", {{"missing", {"Worker_TP1"}}}}},
        0, "log");
  RunRecord run;
  run.trace = t;
  RunFacts facts;
  facts.workers = {worker()};
  facts.workers[0].killed_by_us = true;
  facts.hung = true;
  facts.hang_kind = "deadline";
  facts.hang_phase = "capture";
  classify(facts, contract::View(run.trace), run);
  EXPECT_EQ(run.outcome, Outcome::kHung);
  EXPECT_EQ(run.phase, "warmup");
  EXPECT_EQ(run.first_failed_rank, 1);
  EXPECT_THAT(run.reason, HasSubstr("in warmup; least was heard of Worker_TP1"));
}

TEST(ServerOutcome, EachClockIsAFigureAndOnlyHealthIsReady) {
  TraceBuilder t = server();  // its first event at 1001 ms
  t.at(1100).add("ready", {{"clock", "port"}}, 0, "http");
  t.at(1300).add("ready", {{"clock", "health"}}, 0, "http");
  t.at(1400).add("ready", {{"clock", "first_token"}}, 0, "http");
  t.at(1200).add("ready", {{"clock", "capture"}}, 0, "log");
  t.at(1500).add("ready", {{"clock", "nonsense"}}, 0, "http");
  RunRecord run;
  run.trace = t;
  run.trace.sort_by_time();
  collect_figures(contract::View(run.trace), run);
  EXPECT_NEAR(run.figures.at("time_to_port_s"), 0.100, 1e-9);
  EXPECT_NEAR(run.figures.at("time_to_capture_s"), 0.200, 1e-9);
  EXPECT_NEAR(run.figures.at("time_to_health_s"), 0.300, 1e-9);
  EXPECT_NEAR(run.figures.at("time_to_ready_s"), 0.300, 1e-9);
  EXPECT_NEAR(run.figures.at("time_to_first_token_s"), 0.400, 1e-9);
  EXPECT_FALSE(run.figures.count("time_to_nonsense_s"));
  EXPECT_FALSE(run.figures.count("keys_warmed"));
}

}  // namespace
}  // namespace warmgate::verdict
