#include "harness/contract/served_at_ready.h"

#include <gtest/gtest.h>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

// A server that is seen over HTTP: the process at 0 ms, then what each test adds.
struct Seen : TraceBuilder {
  Seen() {
    add("hello",
        {{"schema", "events/1.0"},
         {"engine", "t"},
         {"pid", 1},
         {"emits", {"ready", "http", "request", "phase_begin", "phase_end"}}},
        0, "http");
    add("ready", {{"clock", "process"}}, 0, "harness");
  }
  Seen& ready(const std::string& clock) {
    add("ready", {{"clock", clock}}, 0, "http");
    return *this;
  }
  Seen& request(int ordinal, bool ok, json more = json::object()) {
    more["id"] = "greedy-" + std::to_string(ordinal);
    more["ordinal"] = ordinal;
    more["ok"] = ok;
    more["class"] = "greedy";
    more["alone"] = true;
    add("request", more, 0, "http");
    return *this;
  }
  Seen& times(double first, double second, double third) {
    request(1, true, {{"ttft_ms", first}});
    request(2, true, {{"ttft_ms", second}});
    request(3, true, {{"ttft_ms", third}});
    return *this;
  }
};

std::vector<std::string> keys(const TraceBuilder& seen) {
  std::vector<std::string> out;
  for (const Finding& f : judge_named("ready-honest", seen).findings) out.push_back(f.key);
  return out;
}
using Keys = std::vector<std::string>;

TEST(ServedAtReady, OpenPortsAndProcessesAreNotReady) {
  Seen seen;
  seen.ready("port").request(1, false, {{"status", 503}, {"end", "answered"}});
  EXPECT_EQ(judge_named("ready-honest", seen).state, State::kNotObserved);
}

TEST(ServedAtReady, RefusedAfterHealthSaidReady) {
  for (const json& how :
       {json{{"status", 503}, {"end", "answered"}}, json{{"status", 0}, {"end", "refused"}},
        json{{"status", 0}, {"end", "no_answer"}}}) {
    Seen seen;
    seen.ready("health").request(1, false, how).request(2, true, {{"ttft_ms", 5}});
    EXPECT_EQ(keys(seen), Keys{"health"}) << how;
  }
  Seen never;
  never.ready("health").request(1, false, {{"status", 503}, {"end", "answered"}});
  EXPECT_NE(judge_named("ready-honest", never).findings[0].message.find("none was served"),
            std::string::npos);
}

TEST(ServedAtReady, WrongRequestsAndLaterFailuresAreNoLie) {
  Seen wrong;
  wrong.ready("health").request(1, false, {{"status", 400}, {"end", "answered"}});
  EXPECT_EQ(keys(wrong), Keys{});
  Seen later;
  later.ready("health").request(1, true).request(2, false, {{"status", 503}, {"end", "answered"}});
  EXPECT_EQ(keys(later), Keys{});
}

TEST(ServedAtReady, TheSecondIsHeldAgainstTheThird) {
  const auto of = [](double first, double second, double third) {
    Seen seen;
    seen.ready("health").times(first, second, third);
    return keys(seen);
  };
  EXPECT_EQ(of(5000, 20, 20), Keys{});  // the first may pay
  EXPECT_EQ(of(20, 400, 20), Keys{"second-request"});
  EXPECT_EQ(of(20, 20, 400), Keys{});
  EXPECT_EQ(of(20, 119, 20), Keys{});   // more than three times, less than 100 ms more
  EXPECT_EQ(of(20, 600, 200), Keys{});  // 400 ms more, three times and no more
  EXPECT_EQ(of(20, 601, 200), Keys{"second-request"});
  Seen mixed;  // nothing to hold it against
  mixed.ready("health").request(2, true, {{"ttft_ms", 900}});
  EXPECT_EQ(keys(mixed), Keys{});
}

// Whole seconds of a log prove no order within a second, and what nobody saw end is not judged.
TEST(ServedAtReady, LogsAreNoFinerThanTheirClock) {
  const auto log = [](Seen& seen, const std::string& ev, json body) {
    seen.add(ev, std::move(body), 0, "log");
  };
  Seen inferred;
  log(inferred, "phase_begin", {{"phase", "capture"}});
  inferred.ready("health");
  log(inferred, "phase_end", {{"phase", "capture"}, {"status", "ok"}, {"inferred", true}});
  EXPECT_EQ(keys(inferred), Keys{});
  Seen seen;
  log(seen, "phase_begin", {{"phase", "capture"}});
  seen.ready("health");
  log(seen, "phase_end", {{"phase", "capture"}, {"status", "ok"}});
  EXPECT_EQ(keys(seen), Keys{"capture"});
}

}  // namespace
}  // namespace warmgate::contract
