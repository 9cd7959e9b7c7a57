#include "harness/explain/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warmgate::explain {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Reading start(std::initializer_list<std::tuple<const char*, double, double>> phases) {
  Reading out;
  out.engine = "vllm";
  out.outcome = "passed";
  std::int64_t line = 1;
  for (const auto& [phase, begin, end] : phases) {
    PhaseSpan span;
    span.phase = phase;
    span.first_line = line;
    span.last_line = line += 10;
    span.begin_s = begin;
    span.end_s = end;
    out.phases.push_back(span);
    out.last_phase = phase;
  }
  return out;
}

Moment moment(const char* sort, const char* name, const char* phase, const char* text) {
  Moment out;
  out.sort = sort;
  out.name = name;
  out.phase = phase;
  out.text = text;
  out.line = 7;
  return out;
}

TEST(WithoutNumbers, TwoRunsSayTheSame) {
  EXPECT_EQ(without_numbers("took 5.31 s at 0x7fA0, 1,024 of 2"), "took <n> s at <n>, <n> of <n>");
  EXPECT_EQ(without_numbers(""), "");
  EXPECT_EQ(without_numbers("0x"), "<n>x");
}

TEST(Compare, ALogAgainstItselfShowsNothing) {
  Reading a = start({{"load", 0, 5}, {"kv", 5, 6}, {"ready", 6, 7}});
  a.figures["kv_gib"] = 21.4;
  a.moments.push_back(moment("skip", "skip.autotune", "warmup", "Skipping x because y"));
  const Comparison c = compare(a, a);
  EXPECT_THAT(c.divergence, IsEmpty());
  EXPECT_THAT(c.figures, IsEmpty());
  EXPECT_THAT(c.only, IsEmpty());
  EXPECT_EQ(c.phases.size(), 3u);
}

TEST(Compare, WhereTheyPart) {
  const Reading a = start({{"load", 0, 5}, {"kv", 5, 6}, {"warmup", 6, 9}, {"ready", 9, 9}});
  Reading b = start({{"load", 0, 9}, {"kv", 9, 10}});
  b.outcome = "crashed";
  b.failing_phase = "kv";
  Comparison c = compare(a, b);
  EXPECT_EQ(c.divergence, "after kv: A goes on to warmup, B crashed in kv");
  ASSERT_EQ(c.phases.size(), 4u);
  EXPECT_DOUBLE_EQ(*c.phases[0].seconds_a, 5);
  EXPECT_DOUBLE_EQ(*c.phases[0].seconds_b, 9);
  EXPECT_EQ(c.phases[2].times_b, 0);
  EXPECT_FALSE(c.phases[2].seconds_b);
  // The other way round it is said the other way round.
  EXPECT_EQ(compare(b, a).divergence, "after kv: A crashed in kv, B goes on to warmup");
}

TEST(Compare, AMilestoneThatOneLacksComesFirst) {
  Reading a = start({{"load", 0, 5}, {"warmup", 5, 9}, {"ready", 9, 9}});
  Reading b = start({{"load", 0, 5}, {"warmup", 5, 9}, {"capture", 9, 12}, {"ready", 12, 12}});
  a.moments.push_back(moment("progress", "compile.cold", "load", "Compiling a graph"));
  b.moments.push_back(moment("progress", "compile.warm", "load", "Directly load the graph"));
  EXPECT_EQ(compare(a, b).divergence, "in load: A has compile.cold, B has not");
}

TEST(Compare, RecurringPhasesAddUpAndRanksDoNot) {
  Reading a = start({{"kv", 0, 1}, {"warmup", 1, 3}, {"kv", 3, 4}, {"warmup", 4, 9}});
  PhaseSpan other;
  other.phase = "warmup";
  other.source = 1;
  other.begin_s = 1000;
  other.end_s = 1002;
  a.phases.push_back(other);
  const Comparison c = compare(a, a);
  ASSERT_EQ(c.phases.size(), 2u);
  EXPECT_EQ(c.phases[1].times_a, 2);
  EXPECT_DOUBLE_EQ(*c.phases[1].seconds_a, 7);
}

TEST(Compare, FiguresAndNewComplaints) {
  Reading a = start({{"kv", 0, 1}}), b = a;
  a.figures = {{"kv_gib", 20.0}, {"zero", 0}, {"same", 1}, {"text", "a"}, {"gone", 3}};
  b.figures = {{"kv_gib", 15.0}, {"zero", 5}, {"same", 1}, {"text", "b"}, {"new", 3}};
  a.moments.push_back(moment("skip", "s", "warmup", "Skipping 3 kernels"));
  b.moments.push_back(moment("skip", "s", "warmup", "Skipping 4 kernels"));
  b.moments.push_back(moment("swallowed", "w", "warmup", "autotune failed, going on"));
  b.moments.push_back(moment("echo", "e", "warmup", "see root cause above"));
  const Comparison c = compare(a, b);
  std::vector<std::string> names;
  for (const FigureDifference& figure : c.figures) names.push_back(figure.name);
  EXPECT_THAT(names, ElementsAre("gone", "kv_gib", "new", "text", "zero"));
  EXPECT_DOUBLE_EQ(*c.figures[1].per_cent, -25);
  EXPECT_FALSE(c.figures[4].per_cent);  // of nothing
  ASSERT_EQ(c.only.size(), 1u);
  EXPECT_EQ(c.only[0].sort, "swallowed");
  EXPECT_EQ(to_json(c)["only"][0]["side"], "b");
}

TEST(Compare, WhatALogBeginsAfterIsNotWhatItNeverReached) {
  const Reading a = start({{"load", 0, 5}, {"profile", 5, 6}, {"kv", 6, 7}, {"ready", 9, 9}});
  const Reading b = start({{"kv", 6, 7}, {"ready", 9, 9}});
  const auto passed = [](const Comparison& c) {
    std::string out;
    for (const PhaseDifference& p : c.phases) out += p.times_b > 0 ? "+" : p.passed_b ? "p" : "-";
    return out;
  };
  Comparison c = compare(a, b);
  EXPECT_EQ(passed(c), "pp++");
  EXPECT_EQ(c.begins, "B's log begins in kv");
  EXPECT_EQ(c.divergence, "");
  EXPECT_EQ(compare(b, a).begins, "A's log begins in kv");
  EXPECT_EQ(to_json(c)["phases"][0]["passed"], nlohmann::json({true, true}));
  // What fell did not reach the rest, whatever came first in it.
  EXPECT_EQ(passed(compare(a, start({{"load", 0, 5}}))), "+---");
  EXPECT_EQ(passed(compare(a, start({{"profile", 0, 5}}))), "p+--");
  // A phase that others pass through later than is usual.
  const Reading late = start({{"load", 0, 1}, {"capture", 1, 2}, {"warmup", 2, 3}});
  EXPECT_EQ(passed(compare(late, start({{"load", 0, 1}, {"capture", 1, 2}}))), "++-");
  // And one that recurs.
  const Reading twice = start({{"load", 0, 1}, {"profile", 1, 2}, {"load", 2, 3}, {"kv", 3, 4}});
  EXPECT_EQ(passed(compare(twice, start({{"load", 0, 1}}))), "+--");
}

TEST(Compare, MilestonesBeforeTheFirstLineAreNotLacking) {
  Reading a = start({{"load", 0, 5}, {"kv", 6, 7}, {"ready", 9, 9}});
  a.moments.push_back(moment("progress", "kv.size", "kv", "x"));
  const Reading b = start({{"kv", 6, 7}, {"ready", 9, 9}});
  EXPECT_EQ(compare(a, b).divergence, "");
  Reading c = start({{"load", 0, 5}, {"kv", 6, 7}, {"ready", 9, 9}});
  EXPECT_EQ(compare(a, c).divergence, "in kv: A has kv.size, B has not");
}

TEST(Compare, NothingAtAll) {
  const Comparison c = compare(Reading(), Reading());
  EXPECT_THAT(c.divergence, IsEmpty());
  EXPECT_TRUE(to_json(c)["divergence"].is_null());
}

}  // namespace
}  // namespace warmgate::explain
