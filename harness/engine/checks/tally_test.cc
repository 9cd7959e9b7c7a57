#include "harness/engine/checks/tally.h"

#include <gmock/gmock.h>

#include <limits>

#include "harness/engine/checks/fake_memory.h"

namespace warmgate::engine::checks {
namespace {

using testing::EventLog;

Comparison of(const char* tensor, int layer, double error, std::int64_t mismatches = 0) {
  Comparison c;
  c.tensor = tensor;
  c.layer = {layer, "c4a", "target"};
  c.rows = 2;
  c.error = error;
  c.mismatches = mismatches;
  return c;
}

TEST(Tally, OneLineAPhaseWithTheWorst) {
  EventLog log;
  Tally tally(log.recorder);
  log.recorder.phase_begin("serve");
  tally.add(of("query", 1, 0.001), 3);
  tally.add(of("query", 7, 0.004), 4);
  tally.add(of("query", 5, 0.002), 5);
  EXPECT_TRUE(log.events("check").empty());  // nothing is wrong, so nothing is urgent
  tally.end_phase();
  const auto events = log.events("check");
  ASSERT_EQ(events.size(), 1u);
  const auto& e = events[0];
  EXPECT_EQ(e["tensor"], "query");
  EXPECT_EQ(e["kind"], "numerics");
  EXPECT_EQ(e["phase"], "serve");
  EXPECT_EQ(e["layer"], 7);
  EXPECT_EQ(e["step"], 4);
  EXPECT_EQ(e["layer_kind"], "c4a");
  EXPECT_EQ(e["role"], "target");
  EXPECT_EQ(e["rows"], 6);
  EXPECT_EQ(e["count"], 3);
  EXPECT_DOUBLE_EQ(e["error"], 0.004);
  EXPECT_DOUBLE_EQ(e["limit"], 1.0 / 128);
  EXPECT_EQ(e["final"], true);
  tally.end_phase();  // the next phase begins with nothing
  EXPECT_EQ(log.events("check").size(), 1u);
}

TEST(Tally, AFailureIsSaidAtOnceAndOnlyOnce) {
  EventLog log;
  Tally tally(log.recorder);
  log.recorder.phase_begin("warmup");
  tally.add(of("topk", 1, 0), 0);
  tally.add(of("topk", 3, 0, 2), 1);
  ASSERT_EQ(log.events("check").size(), 1u);
  EXPECT_EQ(log.events("check")[0]["layer"], 3);
  EXPECT_EQ(log.events("check")[0]["mismatches"], 2);
  EXPECT_EQ(log.events("check")[0].count("final"), 0u);
  tally.add(of("topk", 5, 0, 1), 2);
  EXPECT_EQ(log.events("check").size(), 1u);
  tally.end_phase();
  ASSERT_EQ(log.events("check").size(), 2u);
  EXPECT_EQ(log.events("check")[1]["mismatches"], 3);
}

TEST(Tally, WhatIsNoNumberIsTheWorst) {
  EventLog log;
  Tally tally(log.recorder);
  log.recorder.phase_begin("serve");
  tally.add(of("attention", 1, std::numeric_limits<double>::infinity()), 0);
  tally.add(of("attention", 2, 0.5), 1);
  tally.end_phase();
  const auto events = log.events("check");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(events[1]["error"].is_null());
  EXPECT_EQ(events[1]["layer"], 1);
  EXPECT_TRUE(failed(of("x", 0, std::nan(""))));
  EXPECT_FALSE(failed(of("x", 0, 1.0 / 128)));
  EXPECT_TRUE(failed(of("x", 0, 1.0 / 127)));
}

TEST(Tally, KindsAndTensorsAreApart) {
  EventLog log;
  Tally tally(log.recorder);
  log.recorder.phase_begin("serve");
  Comparison other = of("query", 0, 0.003);
  other.layer.kind = "swaonly";
  tally.add(other, 0);
  tally.add(of("query", 1, 0.001), 0);
  tally.add(of("attention", 1, 0.001), 0);
  tally.end_phase();
  EXPECT_EQ(log.events("check").size(), 3u);
}

}  // namespace
}  // namespace warmgate::engine::checks
