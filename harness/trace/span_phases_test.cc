// Spans that nest made into phases that follow each other, and what is added to a trace.
#include "harness/trace/span_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warmgate::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Told : Trace {
  Told& span(const std::string& phase, std::int64_t begin_ms, std::int64_t end_ms,
             json more = json::object(), int pid = 7) {
    Event e;
    e.ev = "span";
    e.t_ns = begin_ms * 1'000'000;
    e.rank = 0;
    e.src = "span";
    e.source = "span:" + std::to_string(pid);
    e.res_ns = 1'000'000;
    more["name"] = phase;
    more["phase"] = phase;
    more["pid"] = pid;
    more["ms"] = static_cast<double>(end_ms - begin_ms);
    e.body = Fields(more);
    events.push_back(std::move(e));
    return *this;
  }
  Told& begin_by(const std::string& src, const std::string& phase, int rank = 0) {
    Event e;
    e.ev = "phase_begin";
    e.rank = rank;
    e.src = src;
    e.body = {{"phase", phase}};
    events.push_back(std::move(e));
    return *this;
  }
};

std::vector<std::string> pieces(const Trace& trace) {
  std::vector<std::string> out;
  for (const SpanPhase& p : span_phases(trace)) {
    out.push_back(p.phase + " " + std::to_string(p.begin_ns / 1'000'000) + "-" +
                  std::to_string(p.end_ns / 1'000'000));
  }
  return out;
}

TEST(SpanPhases, ThePhaseWithinTakesItsTimeFromTheOneAround) {
  Told told;
  told.span("capture", 40, 60).span("load", 0, 10).span("warmup", 20, 70);
  EXPECT_THAT(pieces(told),
              ElementsAre("load 0-10", "warmup 20-40", "capture 40-60", "warmup 60-70"));
}

TEST(SpanPhases, ThatEndsWithItOrIsTheSameLeavesNoRest) {
  EXPECT_THAT(pieces(Told().span("warmup", 0, 10).span("capture", 5, 10)),
              ElementsAre("warmup 0-5", "capture 5-10"));
  EXPECT_THAT(pieces(Told().span("load", 0, 10).span("load", 2, 8)), ElementsAre("load 0-10"));
  EXPECT_THAT(pieces(Told().span("load", 3, 3)), ElementsAre("load 3-3"));
}

TEST(SpanPhases, ProcessesAreApartAndWhatIsNoPhaseIsNone) {
  Told told;
  told.span("load", 0, 10).span("load", 5, 20, json::object(), 8).span("", 0, 100);
  EXPECT_THAT(pieces(told), ElementsAre("load 0-10", "load 5-20"));
}

TEST(SpanPhases, WildDurationsAreBounded) {
  Told told;
  told.span("load", 0, 1);
  told.events[0].body.set("ms", 1e300);
  EXPECT_THAT(span_phases(told), SizeIs(1));
  told.events[0].body.set("ms", "long");
  EXPECT_THAT(span_phases(told), SizeIs(1));
}

std::vector<std::string> phases_said(const Trace& trace) {
  std::vector<std::string> out;
  for (const Event& e : trace.events) {
    if (e.ev == "phase_begin" || e.ev == "phase_end") {
      out.push_back(e.str("phase") + (e.ev == "phase_end" ? " " + e.str("status") : ""));
    }
  }
  return out;
}

TEST(MergeSpans, PhasesAreAddedWhereNobodyElseToldOfThem) {
  Told alone;
  alone.span("load", 0, 10).span("kv", 20, 30).begin_by("http", "serve");
  merge_spans(alone, true);
  EXPECT_THAT(phases_said(alone), ElementsAre("serve", "load", "load ok", "kv", "kv ok"));
  EXPECT_EQ(alone.emits().count("phase_begin"), 1u);
  Told logged;
  logged.span("load", 0, 10).begin_by("log", "load");
  merge_spans(logged, true);
  EXPECT_THAT(phases_said(logged), ElementsAre("load"));
  Told other;
  other.span("load", 0, 10).begin_by("log", "load", 1);
  merge_spans(other, true);
  EXPECT_THAT(phases_said(other), SizeIs(3)) << "of another rank";
  Told none;
  none.begin_by("log", "load");
  merge_spans(none, true);
  EXPECT_THAT(none.events, SizeIs(1));
}

json raised(const std::string& type, double at_ms) {
  return {{"status", "error"},
          {"exceptions",
           {{{"type", type},
             {"message", "m"},
             {"at_ms", at_ms},
             {"frames", {{{"function", "go"}, {"file", "a.py"}, {"line", 7}}}}}}}};
}

TEST(MergeSpans, AnExceptionIsOneFaultHoweverManySpansItLeft) {
  Told told;
  told.span("capture", 40, 50, raised("E", 10)).span("warmup", 20, 51, raised("E", 31));
  merge_spans(told, false);
  const auto faults = told.of("fault");
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0]->t_ns, 50'000'000);
  EXPECT_EQ(faults[0]->str("type"), "E");
  EXPECT_EQ(faults[0]->str("phase"), "capture");
  EXPECT_EQ(faults[0]->str("function"), "go");
  EXPECT_EQ(faults[0]->num("line"), 7);
  EXPECT_EQ(faults[0]->src, "span");
  EXPECT_THAT(phases_said(told), ElementsAre("warmup", "warmup ok", "capture", "capture failed",
                                             "warmup", "warmup failed"));
  Told mended;
  mended.span("warmup", 20, 51, raised("E", 31));
  merge_spans(mended, true);
  EXPECT_THAT(phases_said(mended), ElementsAre("warmup", "warmup ok"));
  EXPECT_THAT(mended.of("fault"), SizeIs(1));
}

TEST(MergeSpans, AWorkersFaultIsItsRanksWhereItIsAllThereIs) {
  json one = raised("E", 1);
  one["worker"] = "Worker_1";
  Told alone;
  alone.span("load", 0, 10, one);
  EXPECT_EQ(span_faults(alone).at(0).rank, 1);
  alone.world = 2;
  EXPECT_EQ(span_faults(alone).at(0).rank, 0) << "of two servers it is the server";
  one["worker"] = "EngineCore_99999999999999999999";
  Told core;
  core.span("load", 0, 10, one);
  EXPECT_EQ(span_faults(core).at(0).rank, 0);
}

TEST(MergeSpans, HostileExceptionsAreBounded) {
  Told told;
  for (int i = 0; i < 2000; ++i) told.span("load", 0, 10, raised("E" + std::to_string(i), 1));
  told.span("load", 0, 1, {{"exceptions", {1, "x", {{"type", 5}, {"at_ms", "y"}, {"frames", 3}}}}});
  told.span("load", 0, 1, {{"exceptions", 7}});
  merge_spans(told, false);
  EXPECT_LE(told.of("fault").size(), 200u);
  EXPECT_GT(told.of("fault").size(), 0u);
}

}  // namespace
}  // namespace warmgate::trace
