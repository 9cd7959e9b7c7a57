#include "harness/explain/clock.h"

#include <fmt/format.h>

#include "harness/explain/stamps.h"
#include "harness/explain/test_logs.h"

namespace warmgate::explain::internal {
namespace {

#define NEEDS_RE2() \
  if (!available()) GTEST_SKIP() << availability()

Line stamped(double inner, Origin inner_from, double outer = kNoTime,
             Origin outer_from = Origin::kNone) {
  Line out;
  out.inner_s = inner;
  out.inner_from = inner_from;
  out.outer_s = outer;
  out.outer_from = outer_from;
  return out;
}

double seconds_of(std::string_view text) {
  double out = kNoTime;
  if (iso_stamp(text, out) > 0 || month_day_stamp(text, out) > 0) return out;
  clock_stamp(text, out);
  return out;
}

// The stamps of one log, each `YYYY-MM-DD…`, `MM-DD…` or `HH:MM:SS`, in seconds since the first.
std::vector<double> times(const std::vector<std::string>& stamps) {
  Clock clock;
  YearScale years;
  std::vector<double> out;
  for (const std::string& stamp : stamps) {
    const Origin from = stamp.size() < 9  ? Origin::kMidnight
                        : stamp[4] == '-' ? Origin::kYear
                                          : Origin::kDate;
    out.push_back(clock.at(clock.when(stamped(seconds_of(stamp), from), 1, years)));
  }
  const double first = clock.first();
  for (double& one : out) one -= first;
  return out;
}

using Times = std::vector<double>;

TEST(Clock, DatesWithAndWithoutAYearAreOneScale) {
  EXPECT_EQ(times({"07-02 09:00:01", "2026-07-02 09:00:02", "07-02 09:00:03"}), Times({0, 1, 2}));
  EXPECT_EQ(times({"2026-07-02 09:00:01", "07-02 09:00:02", "2026-07-02 09:00:03"}),
            Times({0, 1, 2}));
  // Leap years do not matter, and neither does the end of a year.
  for (const char* year : {"2023", "2024", "2100"}) {
    for (const char* day : {"02-28", "03-01", "12-31"}) {
      const std::string date = fmt::format("{} 23:59:58", day);
      EXPECT_EQ(times({date, fmt::format("{}-{} 23:59:59", year, day)}), Times({0, 1}))
          << year << date;
    }
  }
  EXPECT_EQ(times({"2025-12-31 23:59:59", "2026-01-01 00:00:01"}), Times({0, 2}));
  EXPECT_EQ(times({"12-31 23:59:59", "01-01 00:00:01", "12-31 23:59:59"}), Times({0, 2, 0}));
  EXPECT_EQ(times({"12-31 23:59:59", "2026-01-01 00:00:01"}), Times({0, 2}));
}

TEST(Clock, TimesOfDayGoOnBehindMidnightAndBesideDates) {
  EXPECT_EQ(times({"23:59:59", "00:00:01", "23:59:58"}), Times({1, 3, 0}));
  EXPECT_EQ(times({"2026-07-02 09:00:01", "09:00:02", "07-02 09:00:03"}), Times({0, 1, 2}));
  EXPECT_EQ(times({"09:00:01", "2026-07-02 09:00:02", "09:00:03", "07-03 09:00:02"}),
            Times({0, 1, 2, 86401}));
}

TEST(Clock, WhatCannotBeComparedFollowsTheLineBefore) {
  Clock clock;
  YearScale years;
  clock.when(stamped(1e9, Origin::kYear), 1, years);
  const When a = clock.when(stamped(5, Origin::kStart), 2, years);
  const When b = clock.when(stamped(8, Origin::kStart), 3, years);
  EXPECT_EQ(clock.at(a) - clock.first(), 0);
  EXPECT_EQ(clock.at(b) - clock.first(), 3);
}

TEST(Clock, ALineOfTheWrapperAloneIsPlacedByOneThatHadBoth) {
  Clock clock;
  YearScale years;
  const When before =
      clock.when(stamped(kNoTime, Origin::kNone, 1e9 + 7198, Origin::kYear), 1, years);
  const When both = clock.when(stamped(1e9, Origin::kYear, 1e9 + 7200, Origin::kYear), 2, years);
  EXPECT_EQ(clock.at(both) - clock.at(before), 2);
  EXPECT_EQ(clock.first(), clock.at(before));
  Clock apart;
  apart.when(stamped(1e9, Origin::kYear), 1, years);
  EXPECT_FALSE(has_time(
      apart.at(apart.when(stamped(kNoTime, Origin::kNone, 1e9, Origin::kYear), 2, years))));
}

TEST(Clock, OfAReadingBeginsWithTheStart) {
  NEEDS_RE2();
  for (const std::string& name : samples()) {
    const Reading reading = read_log(sample(name));
    for (const PhaseSpan& span : reading.phases) {
      if (!span.begin_s) continue;
      EXPECT_GE(*span.begin_s, 0) << name;
      EXPECT_LT(*span.begin_s, 100'000) << name << " " << span.phase;
      if (span.end_s) {
        EXPECT_LT(*span.end_s, 100'000) << name << " " << span.phase;
      }
    }
    for (const Moment& moment : reading.moments) {
      if (moment.at_s) {
        EXPECT_GE(*moment.at_s, 0) << name;
        EXPECT_LT(*moment.at_s, 100'000) << name << " line " << moment.line;
      }
    }
  }
  // vLLM prints no year, the library that it starts does, and so does docker.
  const std::string vllm = "(EngineCore pid=2) INFO 07-02 09:00:0";
  const Reading mixed = read_log(
      vllm + "1 [a.py:1] Initializing a V1 LLM engine (v0.24.0) with config: model='m'\n" + vllm +
      "2 [k.py:2] GPU KV cache size: 12 tokens\n"
      "(EngineCore pid=2) 2026-07-02 09:00:04,000 - INFO - autotuner.py:641 - flashinfer.jit: "
      "[Autotuner]: Autotuning process starts\n" +
      vllm + "5 [k.py:2] Application startup complete\n");
  ASSERT_FALSE(mixed.moments.empty());
  for (const Moment& moment : mixed.moments) {
    ASSERT_TRUE(moment.at_s);
    EXPECT_LE(*moment.at_s, 4);
  }
}

TEST(Clock, TwoLogsOfOneStartShareTheirBeginning) {
  NEEDS_RE2();
  Reader reader(grammars());
  for (const char* second : {"1", "3"}) {
    const int source = reader.add_source("log");
    reader.feed(source, fmt::format("(EngineCore pid=2) INFO 07-02 09:00:0{} [k.py:2] GPU KV cache "
                                    "size: 12 tokens, Maximum concurrency for 8 tokens per "
                                    "request: 1.50x\n",
                                    second));
  }
  const Reading reading = reader.finish();
  ASSERT_FALSE(reading.phases.empty());
  EXPECT_TRUE(reading.phases.front().begin_s);
  for (const PhaseSpan& span : reading.phases) {
    if (span.begin_s) {
      EXPECT_EQ(*span.begin_s, span.source * 2);
    }
  }
}

}  // namespace
}  // namespace warmgate::explain::internal
