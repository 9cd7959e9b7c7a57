#include "harness/trace/ranks_of_pids.h"

#include <gtest/gtest.h>

namespace warmgate::trace {
namespace {

Event event(const std::string& ev, std::int64_t pid, std::optional<int> rank = std::nullopt) {
  return harness_event(ev, {{"pid", pid}}, rank);
}

TEST(NameRanks, OfTheProcessThatSaidHello) {
  Trace trace;
  trace.events = {event("fault", 11),     event("hello", 10, 0),    event("hello", 11, 1),
                  event("hello", 11),     event("module", 10),      event("module", 12),
                  event("module", 10, 5), harness_event("skip", {})};
  name_ranks(trace);
  EXPECT_EQ(trace.events[0].rank, 1) << "whenever its hello came";
  EXPECT_EQ(trace.events[3].rank, 1);
  EXPECT_EQ(trace.events[4].rank, 0);
  EXPECT_FALSE(trace.events[5].rank) << "nobody said whose process that is";
  EXPECT_EQ(trace.events[6].rank, 5) << "its own word counts";
  EXPECT_FALSE(trace.events[7].rank);
}

TEST(NameRanks, AProcessOfSeveralRanksIsNoneOfThem) {
  Trace trace;
  trace.events = {event("hello", 10, 0), event("hello", 10, 1), event("hello", 10, 0),
                  event("fault", 10)};
  name_ranks(trace);
  EXPECT_FALSE(trace.events[3].rank);
}

}  // namespace
}  // namespace warmgate::trace
