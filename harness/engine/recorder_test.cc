#include "harness/engine/recorder.h"

#include <gtest/gtest.h>

#include "harness/engine/test_events.h"

namespace warmgate::engine {
namespace {

using test::Events;

constexpr LayerRef kWindow{3, "swaonly", "target"}, kDraft{43, "swaonly", "draft"};

TEST(Recorder, LaunchesAreToldOnceAndCountedAtTheEndOfThePhase) {
  Events events;
  Recorder recorder(events.writer);
  recorder.phase_begin("serve");
  for (int i = 0; i < 5; ++i) recorder.launch("combine", "Combine{A=1}", "i32[1]T", kWindow, 8);
  recorder.launch("gemm", "", "bf16[2]T", kWindow, 7);
  recorder.launch("gemm", "", "bf16[2]T", kDraft, 7);
  recorder.phase_end("ok");
  const auto launches = events.of("launch");
  ASSERT_EQ(launches.size(), 4u);  // three kinds of launch, and the count of the one with a key
  EXPECT_EQ(launches[0]["rows"], 8);
  EXPECT_EQ(launches[0]["phase"], "serve");
  EXPECT_EQ(launches[0]["layer"], 3);
  EXPECT_FALSE(launches[0].contains("final"));
  EXPECT_EQ(launches[2]["role"], "draft");
  EXPECT_EQ(launches[3]["final"], true);
  EXPECT_EQ(launches[3]["count"], 5);
  EXPECT_EQ(launches[3]["rows"], 40);
  const auto end = events.of("phase_end").at(0);
  EXPECT_EQ(end["launches"], nlohmann::json::parse("[[0,5,40],[1,1,7],[2,1,7]]"));
}

TEST(Recorder, EachPhaseTellsItsOwnLaunches) {
  Events events;
  Recorder recorder(events.writer);
  for (const char* phase : {"warmup", "serve"}) {
    recorder.phase_begin(phase);
    recorder.launch("gemm", "", "bf16[2]T", kWindow, 1);
    recorder.phase_end("ok");
  }
  const auto launches = events.of("launch");
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0]["phase"], "warmup");
  EXPECT_EQ(launches[1]["phase"], "serve");
}

// The same memory holds other texts each time, and the same text lies at other addresses.
TEST(Recorder, TemporariesAreToldApartByTheirTexts) {
  Events events;
  Recorder recorder(events.writer);
  recorder.phase_begin("serve");
  std::string reused = "k000";
  for (int i = 0; i < 300; ++i) {
    reused = "k" + std::to_string(100 + i % 3);
    recorder.launch(reused, "", "", kWindow, 1);
  }
  std::vector<std::string> copies(5000, std::string("a kernel name too long to be stored inline"));
  for (const std::string& copy : copies) recorder.launch(copy, "", "", kWindow, 1);
  recorder.phase_end("ok");
  EXPECT_EQ(events.of("launch").size(), 4u);
  const auto counts = events.of("phase_end").at(0)["launches"];
  EXPECT_EQ(counts, nlohmann::json::parse("[[0,100,100],[1,100,100],[2,100,100],[3,5000,5000]]"));
}

TEST(Recorder, MoreAliasesThanFitAreForgottenNotLost) {
  Events events;
  Recorder recorder(events.writer);
  recorder.phase_begin("serve");
  std::vector<std::string> copies(100'000,
                                  std::string("a kernel name too long to be stored inline"));
  for (const std::string& copy : copies) recorder.launch(copy, "", "", kWindow, 1);
  recorder.phase_end("ok");
  EXPECT_EQ(events.of("phase_end").at(0)["launches"][0][1], 100'000);
}

TEST(Recorder, CollectivesAreRunLengthCoded) {
  Events events;
  Recorder recorder(events.writer);
  recorder.phase_begin("serve");
  for (int i = 0; i < 4; ++i) recorder.collective("tp", "all_reduce", 64, i);
  recorder.collective("tp", "all_reduce", 128, 4);
  recorder.collective("world", "all_reduce", 128, 0);
  recorder.collective("world", "all_reduce", 128, 2);  // one is missing: not the same run
  recorder.phase_end("ok");
  const auto runs = events.of("collective");
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[0]["count"], 4);
  EXPECT_EQ(runs[0]["seq"], 0);
  EXPECT_EQ(runs[1]["bytes"], 128);
  EXPECT_EQ(runs[2]["communicator"], "world");
  EXPECT_EQ(runs[3]["seq"], 2);
}

TEST(Recorder, PhaseEndTakesFieldsOfAnotherLine) {
  Events events;
  Recorder recorder(events.writer);
  recorder.phase_begin("kv");
  trace::Line none("x");
  recorder.phase_end("ok", &none);
  recorder.phase_begin("warmup");
  trace::Line some("x");
  some.num("peak_bytes", 5).raw("pools", R"({"a":{"live":1}})").str("note", "a, \"b\"");
  recorder.phase_end("failed", &some);
  const auto ends = events.of("phase_end");
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0]["phase"], "kv");
  EXPECT_EQ(ends[1]["status"], "failed");
  EXPECT_EQ(ends[1]["peak_bytes"], 5);
  EXPECT_EQ(ends[1]["pools"]["a"]["live"], 1);
  EXPECT_EQ(ends[1]["note"], "a, \"b\"");
  EXPECT_EQ(recorder.phase(), "");
}

TEST(Recorder, OnceIsOncePerPhase) {
  Events events;
  Recorder recorder(events.writer);
  for (const char* phase : {"load", "profile"}) {
    recorder.phase_begin(phase);
    for (int i = 0; i < 3; ++i) recorder.once(trace::Line("alloc").num("bytes", 1));
    recorder.phase_end("ok");
  }
  EXPECT_EQ(events.of("alloc").size(), 2u);
}

TEST(Recorder, CountersKeepWholeNumbersWhole) {
  Events events;
  Recorder recorder(events.writer);
  recorder.counter("kv_bytes", 95007340800.0);
  recorder.counter("concurrency", 8.795231953979);
  recorder.counter("huge", 1e300);
  const auto counters = events.of("counter");
  EXPECT_TRUE(counters[0]["value"].is_number_integer());
  EXPECT_EQ(counters[0]["value"], 95007340800);
  EXPECT_DOUBLE_EQ(counters[1]["value"].get<double>(), 8.795231953979);
  EXPECT_DOUBLE_EQ(counters[2]["value"].get<double>(), 1e300);
}

TEST(Recorder, HeartbeatOnlyAfterSilence) {
  Events events;
  Recorder recorder(events.writer);
  recorder.phase_begin("serve");
  for (int i = 0; i < 1000; ++i) recorder.heartbeat();
  EXPECT_TRUE(events.of("heartbeat").empty());
}

}  // namespace
}  // namespace warmgate::engine
