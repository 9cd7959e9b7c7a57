#include "harness/verdict/figures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/verdict/test_run.h"

namespace warmgate::verdict {
namespace {

using namespace testing;
using contract::testing::good_end;
using contract::testing::TraceBuilder;

RunRecord collected(const trace::Trace& trace) {
  RunRecord r;
  r.trace = trace;
  for (const contract::Contract* c : contract::builtin_contracts())
    r.contracts.push_back(contract::judge(*c, contract::Context{r.trace, nullptr}));
  collect_figures(contract::View(r.trace), r);
  return r;
}

TEST(Figures, OfAGoodRun) {
  const RunRecord r = collected(good_end());
  const std::map<std::string, double> expected = {{"kv_bytes", 1000000},
                                                  {"kv_blocks", 10},
                                                  {"kv_tokens", 2560},
                                                  {"concurrency", 2.5},
                                                  {"blocks_per_request", 4},
                                                  {"block_stride_bytes", 100000},
                                                  {"keys_asked", 2},
                                                  {"keys_warmed", 2},
                                                  {"keys_launched", 1},
                                                  {"keys_invalid", 0},
                                                  {"skips", 0},
                                                  {"compiles_after_ready", 0},
                                                  {"steps_served", 1},
                                                  {"requests_ok", 1},
                                                  {"output_tokens", 8},
                                                  {"workspace_bytes", 4096}};
  for (const auto& [name, value] : expected) {
    ASSERT_EQ(r.figures.count(name), 1u) << name;
    EXPECT_DOUBLE_EQ(r.figures.at(name), value) << name;
  }
  EXPECT_GT(r.figures.at("time_to_ready_s"), 0);
  EXPECT_GT(r.figures.at("warmup_s"), 0);
  EXPECT_EQ(r.figures.count("serve_peak_bytes"), 0u);
  EXPECT_EQ(r.sets.at("keys_warmed"), (std::vector<std::string>{"K{A=1}", "K{A=4}"}));
  EXPECT_EQ(r.sets.at("kernels"), (std::vector<std::string>{"K", "gemm"}));
  EXPECT_EQ(r.sets.at("contract:keys-reachable"), std::vector<std::string>{});
}

// Nor is a key warmed whose compile failed.
TEST(Figures, AKeyThatWasAskedForAndNeverCompiledIsNotWarmed) {
  TraceBuilder t;
  t.hello().begin("warmup");
  t.add("asked", {{"kernel", "K"}, {"keys", {"K{A=1}", "K{A=4}", "K{A=9}"}}});
  t.compile("K{A=1}", "warmup").compile("K{A=4}", "warmup", "failed").end("warmup").exited();
  const RunRecord r = collected(t);
  EXPECT_EQ(r.figures.at("keys_asked"), 3);
  EXPECT_EQ(r.figures.at("keys_warmed"), 1);
  EXPECT_EQ(r.sets.at("keys_warmed"), std::vector<std::string>{"K{A=1}"});
}

TEST(Figures, WhatNobodyWouldHaveSentIsAbsentNotZero) {
  TraceBuilder t;
  t.hello(0, {"phase_begin"}).phase("warmup").ready().begin("serve").bye().exited();
  const RunRecord r = collected(t);
  for (const char* name : {"keys_asked", "keys_warmed", "keys_launched", "keys_invalid", "skips",
                           "compiles_after_ready", "kv_tokens", "requests_ok"})
    EXPECT_EQ(r.figures.count(name), 0u) << name;
  EXPECT_EQ(r.sets.count("compiles_after_ready"), 0u);
}

TEST(Figures, WhatWasNotReachedIsAbsent) {
  TraceBuilder t;
  t.hello().begin("profile").exited(0, 1);
  const RunRecord r = collected(t);
  for (const char* name :
       {"keys_warmed", "keys_launched", "compiles_after_ready", "time_to_ready_s", "profile_s"})
    EXPECT_EQ(r.figures.count(name), 0u) << name;
}

TEST(Figures, TheWorstRankCounts) {
  TraceBuilder t(2);
  for (int rank : {0, 1}) {
    t.hello(rank).begin("load", rank);
    t.add("counter", {{"name", "kv_blocks"}, {"value", 100 + rank}}, rank);
    t.add("counter", {{"name", "weights_bytes"}, {"value", 100 + rank}}, rank);
  }
  t.end("load", 0).at(5000).end("load", 1);
  const RunRecord r = collected(t);
  EXPECT_EQ(r.figures.at("kv_blocks"), 100);      // higher is better: the smallest
  EXPECT_EQ(r.figures.at("weights_bytes"), 101);  // lower is better: the largest
  EXPECT_GT(r.figures.at("load_s"), 3.9);
}

TEST(Figures, AClaimDoesNotChangeWhatTheHarnessMeasured) {
  TraceBuilder t;
  t.at(2000).hello();
  t.add("counter", {{"name", "time_to_ready_s"}, {"value", -1}});
  t.add("counter", {{"name", "kv_tokens"}, {"value", 7}});
  t.at(2500).ready().bye();
  const RunRecord r = collected(t);
  EXPECT_GT(r.figures.at("time_to_ready_s"), 0);
  EXPECT_EQ(r.figures.at("kv_tokens"), 7);
}

TEST(Figures, FromSpawnWhereTheHarnessSawIt) {
  TraceBuilder t;
  t.at(2000).hello().phase("load").at(2500).ready().bye().at(2999);
  t.add("process_end", {{"pid", 100}, {"exit_code", 0}, {"wall_s", 2.0}}, 0, "harness");
  // Ended at 3.0 s, lived 2 s: spawned at 1.0 s; ready at 2.502 s.
  EXPECT_NEAR(collected(t).figures.at("time_to_ready_s"), 1.502, 1e-6);
}

TEST(Figures, ACounterOutweighsWhatIsDerived) {
  TraceBuilder t = contract::testing::good_run();
  t.add("counter", {{"name", "output_tokens"}, {"value", 192}});
  t.add("counter", {{"name", "my_own"}, {"value", 3}});
  t.add("counter", {{"name", "bad"}, {"value", "x"}}).add("counter", {{"name", 5}, {"value", 1}});
  const RunRecord r = collected(t);
  EXPECT_EQ(r.figures.at("output_tokens"), 192);
  EXPECT_EQ(r.figures.at("my_own"), 3);
  EXPECT_EQ(r.figures.count("bad"), 0u);
}

TEST(Figures, InvalidAndLateKeys) {
  TraceBuilder t = contract::testing::good_run();
  t.bye().exited().check("K{A=1}", false).check("K{A=4}", true);
  t.compile("K{A=7}", "serve");
  const RunRecord r = collected(t);
  EXPECT_EQ(r.figures.at("keys_invalid"), 1);
  EXPECT_EQ(r.sets.at("keys_invalid"), std::vector<std::string>{"K{A=1}"});
  EXPECT_EQ(r.figures.at("compiles_after_ready"), 1);
  EXPECT_EQ(r.sets.at("contract:keys-covered"), std::vector<std::string>{"K{A=7}"});
}

TEST(Figures, WildTimesGiveNoNonsense) {
  trace::Trace t = good_end().trace();
  for (std::size_t i = 0; i < t.events.size(); i += 3)
    t.events[i].t_ns = i % 2 ? INT64_MAX : INT64_MIN;
  for (auto& e : t.events)
    if (e.ev == "process_end") e.body.set("wall_s", 1e300);
  for (const auto& [name, value] : collected(t).figures) EXPECT_TRUE(std::isfinite(value)) << name;
}

TEST(Figures, WarningsAreMaskedAndOnce) {
  Output out{0, "stderr", 99, "[4711] WARNING 12:01 slow at 0x7f00aa\n", "", {}};
  out.tail = "[4712] WARNING 12:02 slow at 0x7f00bb\nall fine\n";
  EXPECT_EQ(warnings_of({out}), std::vector<std::string>{"[#] WARNING #:# slow at 0x#"});
}

}  // namespace
}  // namespace warmgate::verdict
