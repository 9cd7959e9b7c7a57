// Real commands under watch: engines that say their phases, ones that only print, ones that fail.
#include "harness/run/watch/watch.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "harness/scenario/problems.h"

namespace warmgate::run {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

struct Seen {
  Watched watched;
  std::vector<std::string> lines, printed;
};

Seen watch_shell(const std::string& script, WatchOptions options = {}) {
  options.argv = {"sh", "-c", script};
  Seen out;
  const target::CancelToken cancel;
  out.watched = watch(
      options, cancel, [&](const LiveLine& line) { out.lines.push_back(line.text); },
      [&](std::string_view text) { out.printed.emplace_back(text); });
  return out;
}

TEST(Watch, OfACommandThatSaysNothing) {
  const Seen seen = watch_shell("true");
  EXPECT_EQ(seen.watched.run.outcome, verdict::Outcome::kPassed) << seen.watched.run.reason;
  EXPECT_FALSE(seen.watched.ready_s);
}

TEST(Watch, OfOneThatDies) {
  EXPECT_EQ(watch_shell("exit 3").watched.run.outcome, verdict::Outcome::kCrashed);
  EXPECT_EQ(watch_shell("kill -SEGV $$").watched.run.signal_name, "SIGSEGV");
}

TEST(Watch, TheUsersWordForReadyEndsItWhereThatWasAskedFor) {
  WatchOptions options;
  options.ready_text = "listening";
  options.until_ready = true;
  options.output = true;
  const Seen seen = watch_shell("echo loading; echo now listening on 1; exec sleep 60", options);
  EXPECT_TRUE(seen.watched.ready_s);
  EXPECT_EQ(seen.watched.run.outcome, verdict::Outcome::kPassed) << seen.watched.run.reason;
  EXPECT_THAT(seen.printed, Contains("loading"));
  EXPECT_THAT(seen.lines, Contains(HasSubstr("ready")));
}

TEST(Watch, ATimeThatIsOverIsAHang) {
  WatchOptions options;
  options.timeout_s = 0.3;
  const Seen seen = watch_shell("exec sleep 60", options);
  EXPECT_EQ(seen.watched.run.outcome, verdict::Outcome::kHung);
  EXPECT_THAT(seen.lines, Contains(HasSubstr("waiting in")));
}

TEST(Watch, EventsOfAProcessAreLinesAndAreJudged) {
  const Seen seen = watch_shell(R"(
say() { printf '%s\n' "$1" >> "$WARMGATE_EVENTS_DIR/h.1.1.jsonl"; }
say '{"ev":"hello","t":1,"schema":"events/1.0","engine":"e","pid":1,"rank":0,"world":1,"emits":["phase_begin","phase_end"]}'
say '{"ev":"phase_begin","t":2,"rank":0,"phase":"load"}'
say '{"ev":"phase_end","t":3,"rank":0,"phase":"load","status":"failed"}'
exit 1)");
  EXPECT_THAT(seen.lines, Contains(HasSubstr("load failed")));
  EXPECT_EQ(seen.watched.run.outcome, verdict::Outcome::kCrashed);
}

TEST(Watch, WhatItEndsAtReadyIsNotBlamedForWhatWasUnderWay) {
  WatchOptions options;
  options.until_ready = true;
  const Seen seen = watch_shell(R"(
say() { printf '%s\n' "$1" >> "$WARMGATE_EVENTS_DIR/h.1.1.jsonl"; }
touch "$TMPDIR/left"
say '{"ev":"hello","t":1,"schema":"events/1.0","engine":"e","pid":1,"rank":0,"world":1,"emits":["phase_begin","phase_end","ready"]}'
say '{"ev":"phase_begin","t":2,"rank":0,"phase":"load"}'
say '{"ev":"phase_end","t":3,"rank":0,"phase":"load","status":"ok"}'
say '{"ev":"ready","t":4,"rank":0,"clock":"process"}'
say '{"ev":"phase_begin","t":5,"rank":0,"phase":"serve"}'
exec sleep 60)",
                                options);
  EXPECT_EQ(seen.watched.run.outcome, verdict::Outcome::kPassed) << seen.watched.run.reason;
}

TEST(Watch, SpansOfTheCommandAreReceived) {
  WatchOptions options;
  options.probes = {"spans"};
  const Seen seen = watch_shell(R"(exec python3 -c '
import json, os, time, urllib.request
now = time.time_ns()
span = {"name": "load", "startTimeUnixNano": str(now - 1000000), "endTimeUnixNano": str(now)}
body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
where = os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
urllib.request.urlopen(urllib.request.Request(where, body, {"Content-Type": "application/json"}))
')",
                                options);
  EXPECT_EQ(seen.watched.run.trace.of("span").size(), 1u) << seen.watched.run.reason;
  EXPECT_EQ(seen.watched.run.trace.of("phase_begin").size(), 1u);
}

TEST(Watch, ALineWithoutAnEndIsReadToo) {
  WatchOptions options;
  options.output = true;
  options.ready_text = "READY";
  options.until_ready = true;
  const Seen ready = watch_shell("printf 'now READY'; exec sleep 60", options);
  EXPECT_TRUE(ready.watched.ready_s);
  const Seen last = watch_shell("printf 'fatal: no newline' >&2; exit 3", options);
  EXPECT_THAT(last.printed, Contains("fatal: no newline"));
  EXPECT_TRUE(last.watched.never_ready);
}

TEST(Watch, WhatCannotBeStartedIsNoFailureOfTheCommands) {
  WatchOptions options;
  options.argv = {"/nonexistent/engine"};
  const target::CancelToken cancel;
  const Watched seen = watch(options, cancel, [](const LiveLine&) {}, {});
  EXPECT_EQ(seen.run.outcome, verdict::Outcome::kInfra);
  options.argv = {};
  EXPECT_THROW(watch(options, cancel, [](const LiveLine&) {}, {}), std::invalid_argument);
  options.argv = {"true"};
  options.probes = {"rocm"};
  EXPECT_THROW(watch(options, cancel, [](const LiveLine&) {}, {}), scenario::ScenarioError);
}

}  // namespace
}  // namespace warmgate::run
