#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/contract/contract.h"
#include "harness/contract/test_trace.h"

namespace warmgate::contract::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Times in ms; phases of the log are a second blurred, as the log follower has them.
class Channels : public TraceBuilder {
 public:
  Channels() {
    hello();
    asked({"spans"});
    at(0).add("probe", {{"probe", "spans"}, {"status", "attached"}}, 0, "span");
  }
  Channels& asked(std::vector<std::string> names) {
    at(0).add("probe", {{"status", "asked"}, {"probes", names}}, 0, "harness");
    return *this;
  }
  Channels& log(const std::string& phase, int begin, int end, json more = json::object()) {
    json body = {{"phase", phase}, {"worker", "Worker_TP0"}};
    at(begin).add("phase_begin", body, 0, "log");
    trace().events.back().res_ns = 1'000'000'000;
    body["status"] = "ok";
    body.update(more);
    at(end).add("phase_end", body, 0, "log");
    trace().events.back().res_ns = 1'000'000'000;
    return *this;
  }
  Channels& span(const std::string& phase, int begin, int end, int pid = 7) {
    at(begin).add("span", {{"name", phase}, {"phase", phase}, {"ms", end - begin}, {"pid", pid}}, 0,
                  "span");
    trace().events.back().res_ns = 1'000'000;
    return *this;
  }
  Channels& code(int t, const std::string& kernel, int pid = 7, json more = json::object()) {
    json body = {{"bytes", 10}, {"origin", "memory"}, {"names", {kernel}}, {"pid", pid}};
    body.update(more);
    at(t).add("module", body, 0, "probe");
    return *this;
  }
  Channels& ready_at(int t) {
    at(t).add("ready", {{"clock", "health"}}, 0, "http");
    return *this;
  }
  Result judged() {
    trace().sort_by_time();
    const Context context{trace()};
    return judge(*find_contract("spans-agree"), context);
  }
  std::vector<std::string> keys() {
    std::vector<std::string> out;
    for (const Finding& note : judged().notes) out.push_back(note.key);
    return out;
  }
};

TEST(SpansAgree, WhoAskedForNoneIsToldNothing) {
  TraceBuilder nobody;
  nobody.hello().ready();
  EXPECT_EQ(judge(*find_contract("spans-agree"), Context{nobody.trace()}).state,
            State::kNotApplicable);
  TraceBuilder other;
  other.hello().add("probe", {{"status", "asked"}, {"probes", {"cuda"}}}, 0, "harness");
  EXPECT_EQ(judge(*find_contract("spans-agree"), Context{other.trace()}).state,
            State::kNotApplicable);
}

TEST(SpansAgree, WhereNoneCameItSaysWhy) {
  TraceBuilder none;
  none.hello().add("probe", {{"status", "asked"}, {"probes", {"spans"}}}, 0, "harness");
  none.add("probe", {{"status", "not attached"}, {"reason", "no span came"}}, 0, "span");
  const Result result = judge(*find_contract("spans-agree"), Context{none.trace()});
  EXPECT_EQ(result.state, State::kNotObserved);
  EXPECT_EQ(result.why, "no span came");
  Channels unnamed;
  unnamed.span("", 10, 20);
  EXPECT_EQ(unnamed.judged().state, State::kNotObserved);
}

TEST(SpansAgree, ChannelsThatAgreeAreKeptWithoutANote) {
  Channels told;
  told.log("load", 0, 10000).span("load", 100, 9500).log("warmup", 10000, 20000);
  told.span("warmup", 10000, 20000).code(15000, "in_warmup").ready_at(20500);
  EXPECT_EQ(told.judged().state, State::kKept);
  EXPECT_THAT(told.judged().notes, IsEmpty());
  EXPECT_EQ(told.judged().why, "");
  Channels alone;
  alone.span("load", 0, 10);
  EXPECT_THAT(alone.judged().why, HasSubstr("no log"));
}

TEST(SpansAgree, DurationsDifferOnlyBeyondBothClocksAndAFifth) {
  Channels coarse;
  coarse.log("load", 0, 2000).span("load", 0, 100);
  EXPECT_THAT(coarse.keys(), IsEmpty()) << "two seconds of blur";
  Channels fifth;
  fifth.log("load", 0, 100000).span("load", 0, 81000);
  EXPECT_THAT(fifth.keys(), IsEmpty());
  Channels apart;
  apart.log("load", 0, 100000).span("load", 0, 79000);
  EXPECT_THAT(apart.keys(), ::testing::ElementsAre("duration/load"));
  EXPECT_EQ(apart.judged().state, State::kKept) << "no finding that fails a start";
  EXPECT_THAT(apart.judged().notes[0].message, HasSubstr("100.0 s by the log and 79.0 s"));
  Channels inferred;
  inferred.log("load", 0, 100000, {{"inferred", true}}).span("load", 0, 10000);
  EXPECT_THAT(inferred.keys(), IsEmpty()) << "nobody saw when it ended";
  Channels workers;
  workers.log("load", 0, 10000).span("load", 0, 9900, 7).span("load", 0, 9900, 8);
  EXPECT_THAT(workers.keys(), IsEmpty()) << "two workers at once are not twice as long";
  Channels nested;
  nested.log("warmup", 0, 10000).log("capture", 10000, 30000);
  nested.span("warmup", 0, 30000).span("capture", 10000, 30000);
  EXPECT_THAT(nested.keys(), IsEmpty()) << "a capture within warmup is its own";
}

TEST(SpansAgree, AnOtherOrderIsSaidOnce) {
  Channels told;
  told.log("load", 0, 5000).log("kv", 5000, 10000).span("kv", 0, 5000).span("load", 5000, 10000);
  EXPECT_THAT(told.keys(), ::testing::ElementsAre("order/kv"));
  Channels blurred;
  blurred.log("load", 0, 500).log("kv", 500, 1000).span("kv", 0, 500).span("load", 500, 1000);
  EXPECT_THAT(blurred.keys(), IsEmpty());
}

TEST(SpansAgree, CodeBetweenTheEndOfWarmingAndReadyIsSaid) {
  Channels told;
  told.span("warmup", 0, 1000).ready_at(3000);
  told.code(2000, "late_kernel").code(2100, "elsewhere", 8).code(3500, "after_ready");
  told.code(2200, "library", 7, {{"origin", "library"}}).code(2300, "lazy", 7, {{"lazy", true}});
  EXPECT_THAT(told.keys(), ::testing::ElementsAre("late/late_kernel"));
  Channels never;
  never.span("warmup", 0, 1000).code(2000, "late_kernel");
  EXPECT_THAT(never.keys(), IsEmpty());
}

TEST(SpansAgree, ReadyDuringAPhaseIsSaidWhereTheLogTellsOfPhases) {
  Channels told;
  told.log("capture", 0, 900).span("capture", 0, 5000).ready_at(1000);
  EXPECT_THAT(told.keys(), ::testing::Contains("ready/capture"));
  Channels merged;
  merged.span("capture", 0, 5000).ready_at(1000);
  merged.at(0).add("phase_begin", {{"phase", "capture"}}, 0, "span");
  EXPECT_THAT(merged.keys(), IsEmpty()) << "ready-honest judges it then";
}

TEST(SpansAgree, NotesOfHostileTracesAreBounded) {
  Channels told;
  told.span("warmup", 0, 1000).ready_at(900000);
  for (int i = 0; i < 1000; ++i) told.code(2000 + i, "k" + std::to_string(i));
  EXPECT_LE(told.judged().notes.size(), 200u);
}

}  // namespace
}  // namespace warmgate::contract::testing
