#include "harness/run/watch/live.h"

#include <gmock/gmock.h>

#include "harness/trace/wire.h"

namespace warmgate::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = LiveLine::Kind;

constexpr std::int64_t kStart = 1'000'000'000'000;

trace::Event event(const std::string& ev, double t_s, trace::Fields body,
                   const std::string& src = "probe", std::optional<int> rank = std::nullopt) {
  trace::Event out = trace::harness_event(ev, std::move(body), rank);
  out.src = src;
  out.source = src;
  out.t_ns = kStart + static_cast<std::int64_t>(t_s * 1e9);
  return out;
}

trace::Event module(double t_s, const std::string& origin, bool lazy = false) {
  return event("module", t_s,
               {{"bytes", 2048},
                {"names", {"compress"}},
                {"kernels", 1},
                {"origin", origin},
                {"lazy", lazy}});
}

std::vector<std::string> texts(Live& live, const trace::Event& e) {
  std::vector<std::string> out;
  for (const LiveLine& line : live.take(e)) out.push_back(line.text);
  return out;
}

TEST(Live, SumsBeforeReadyAndTellsEachThingAfterIt) {
  Live live(kStart);
  EXPECT_THAT(texts(live, event("phase_begin", 1, {{"phase", "load"}}, "log")),
              ElementsAre("load …"));
  EXPECT_THAT(texts(live, module(1.5, "memory")), IsEmpty());
  EXPECT_THAT(texts(live, event("alloc", 2, {{"bytes", 1 << 30}})), IsEmpty());
  EXPECT_THAT(
      texts(live, event("phase_end", 3, {{"phase", "load"}, {"status", "ok"}}, "log")),
      ElementsAre(
          "load done in 2.0 s (so far 1 module of 2.00 KiB, 1.00 GiB of device memory taken)"));
  EXPECT_THAT(texts(live, event("ready", 4, {{"clock", "process"}}, "channel")), SizeIs(1));
  EXPECT_DOUBLE_EQ(*live.ready_s(), 4);
  EXPECT_THAT(texts(live, module(5, "memory")),
              ElementsAre("code compiled or read: compress (2.00 KiB)"));
  EXPECT_THAT(texts(live, module(5, "memory", true)),
              ElementsAre(HasSubstr("of a library, lazily")));
  EXPECT_THAT(texts(live, event("alloc", 6, {{"bytes", 1 << 30}})),
              ElementsAre("1.00 GiB of device memory taken"));
  EXPECT_THAT(texts(live, event("alloc", 6, {{"bytes", 1000}})), IsEmpty())
      << "small ones are no news";
  EXPECT_THAT(texts(live, event("ready", 7, {{"clock", "log"}}, "log")), IsEmpty()) << "once";
}

TEST(Live, WhatHappensInsideACaptureIsToldAtOnce) {
  Live live(kStart);
  trace::Event inside = module(1, "memory");
  inside.body.set("in_capture", "own");
  EXPECT_THAT(texts(live, inside), ElementsAre(HasSubstr("inside a capture")));
  EXPECT_THAT(texts(live, event("sync", 1, {{"call", "cuStreamSynchronize"}})),
              ElementsAre("cuStreamSynchronize inside a capture"));
  const auto freed = live.take(event("free", 2, {{"bytes", 1 << 20}, {"named_by", {"0x1"}}}));
  ASSERT_THAT(freed, SizeIs(1));
  EXPECT_EQ(freed[0].kind, Kind::kLate);
}

TEST(Live, RanksAreNamedOnceThereAreSeveral) {
  Live live(kStart);
  EXPECT_THAT(texts(live, event("phase_begin", 1, {{"phase", "load"}}, "a", 0)),
              ElementsAre("load …"));
  EXPECT_THAT(texts(live, event("phase_begin", 1, {{"phase", "load"}}, "b", 1)),
              ElementsAre("rank 1: load …"));
}

TEST(Live, AllRanksAreReadyOnceEachHasSaidSo) {
  Live live(kStart);
  (void)live.take(event("hello", 1, {{"world", 2}}, "channel", 0));
  (void)live.take(event("ready", 2, {{"clock", "process"}}, "channel", 0));
  EXPECT_TRUE(live.ready());
  EXPECT_FALSE(live.all_ready()) << "there are two";
  (void)live.take(event("hello", 3, {{"world", 2}}, "channel", 1));
  EXPECT_FALSE(live.all_ready());
  (void)live.take(event("ready", 4, {{"clock", "process"}}, "channel", 1));
  EXPECT_TRUE(live.all_ready());
  Live log(kStart);
  (void)log.take(event("ready", 2, {{"clock", "log"}}, "log"));
  EXPECT_TRUE(log.all_ready()) << "a log speaks for all";
}

TEST(Live, AProbeThatIsInEveryProcessIsToldOnce) {
  Live live(kStart);
  EXPECT_THAT(texts(live, event("probe", 1, {{"status", "attached"}})),
              ElementsAre("cuda probe attached"));
  EXPECT_THAT(texts(live, event("probe", 2, {{"status", "attached"}})), IsEmpty());
  EXPECT_THAT(texts(live, event("probe", 2, {{"status", "asked"}}, "harness")), IsEmpty());
}

TEST(Live, HostileFieldsMakeLinesAndNoHarm) {
  Live live(kStart);
  (void)live.take(event("module", -5, {{"bytes", -1}, {"names", 3}}));
  (void)live.take(event("alloc", 1, {{"bytes", "many"}}));
  (void)live.take(event("phase_end", 1, {}));
  const auto lines = live.take(event("ready", -3, {}));
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].t_s, 0) << "no time before the start";
}

}  // namespace
}  // namespace warmgate::run
