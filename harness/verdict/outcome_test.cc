#include "harness/verdict/outcome.h"

#include <gtest/gtest.h>

#include <csignal>

#include "harness/verdict/test_run.h"

namespace warmgate::verdict {
namespace {

using namespace testing;
using contract::testing::good_end;
using contract::testing::good_run;
using contract::testing::TraceBuilder;

// As run/ does it: all contracts judged, then classified.
RunRecord classified(const trace::Trace& trace, RunFacts facts) {
  RunRecord record;
  record.trace = trace;
  for (const contract::Contract* c : contract::builtin_contracts())
    record.contracts.push_back(contract::judge(*c, contract::Context{record.trace, nullptr}));
  classify(facts, contract::View(record.trace), record);
  return record;
}

RunFacts ended(std::vector<WorkerEnd> workers) {
  RunFacts facts;
  facts.workers = std::move(workers);
  return facts;
}

TEST(Outcome, Passed) {
  const RunRecord r = classified(good_end(), ended({worker()}));
  EXPECT_EQ(r.outcome, Outcome::kPassed) << r.reason;
  EXPECT_EQ(r.kind, "");
  EXPECT_EQ(r.phase, "");
  EXPECT_EQ(r.phases_ended, (std::vector<std::string>{"bootstrap", "load", "profile", "kv",
                                                      "warmup", "ready", "serve", "shutdown"}));
}

struct Liar {
  const char* name;
  TraceBuilder trace;
  RunFacts facts;
  Outcome outcome;
  const char* kind;
  const char* phase;
  const char* says;  // in the reason
};

std::vector<Liar> liars() {
  std::vector<Liar> out;
  const auto add = [&](const char* name, TraceBuilder t, RunFacts facts, Outcome outcome,
                       const char* kind, const char* phase, const char* says) {
    out.push_back({name, std::move(t), std::move(facts), outcome, kind, phase, says});
  };
  const auto in_load = [] { return TraceBuilder().hello().begin("load"); };

  add("segfault", in_load().signalled(SIGSEGV), ended({worker(0, SIGSEGV)}), Outcome::kCrashed,
      "signal", "load", "SIGSEGV");
  add("abort", in_load().signalled(SIGABRT), ended({worker(0, SIGABRT)}), Outcome::kCrashed,
      "signal", "load", "SIGABRT");
  RunFacts asserted = ended({worker(0, SIGABRT)});
  asserted.outputs = {{0, "stderr", 40, "x.cc:3: main: Assertion `a' failed.\n", "", {}}};
  add("assert", in_load().signalled(SIGABRT), asserted, Outcome::kCrashed, "assert", "load",
      "assertion");
  add("exit 3", in_load().exited(0, 3), ended({worker(3)}), Outcome::kCrashed, "exit", "load",
      "code 3");
  add("dies before hello", TraceBuilder().exited(0, 127), ended({worker(127)}), Outcome::kCrashed,
      "exit", "", "before it said hello");
  add("never hello, exit 0", TraceBuilder().exited(), ended({worker()}), Outcome::kFailed,
      "protocol", "", "hello");
  add("raises",
      in_load().fault("AssertionError", "no buffer").end("load", 0, "failed").exited(0, 1),
      ended({worker(1)}), Outcome::kCrashed, "exception", "load", "AssertionError: no buffer");

  RunFacts hung = ended({worker(0, SIGKILL)});
  hung.workers[0].killed_by_us = hung.workers[0].needed_sigkill = true;
  hung.hung = true;
  hung.hang_kind = "silence";
  hung.hang_phase = "load";
  TraceBuilder hanging = in_load();
  hanging.add("deadline", {{"phase", "load"}, {"kind", "silence"}}, 0, "harness");
  hanging.signalled(SIGKILL, 0, true);
  add("hangs in silence, ignores SIGTERM", hanging, hung, Outcome::kHung, "silence", "load",
      "SIGKILL");
  RunFacts deadline = hung;
  deadline.hang_kind = "deadline";
  deadline.workers[0].needed_sigkill = false;
  add("hangs with a heartbeat", hanging, deadline, Outcome::kHung, "deadline", "load",
      "within its deadline");
  TraceBuilder peer(2);
  peer.hello(0).hello(1).begin("load", 0).begin("load", 1).signalled(SIGSEGV, 1);
  peer.add("deadline", {{"phase", "load"}, {"kind", "silence"}}, 0, "harness").exited(0, 1, true);
  RunFacts waiting = ended({worker(1), worker(0, SIGSEGV, 1)});
  waiting.workers[0].killed_by_us = true;
  waiting.hung = true;
  add("the peer of a dead rank waits", peer, waiting, Outcome::kCrashed, "signal", "load",
      "rank 1 ended by SIGSEGV");

  RunFacts oom = ended({worker(0, SIGABRT)});
  oom.outputs = {{0, "stderr", 9, "", "", {"terminate called: std::bad_alloc"}}};
  add("memory limit, C++", in_load().signalled(SIGABRT), oom, Outcome::kCrashed, "oom", "load",
      "out of memory");
  add("memory limit, Python",
      in_load().fault("MemoryError", "").end("load", 0, "failed").exited(0, 1), ended({worker(1)}),
      Outcome::kCrashed, "oom", "load", "out of memory");
  RunFacts killer = ended({worker(0, SIGKILL)});
  killer.workers[0].peak_rss_bytes = 90;
  killer.memory_limit_bytes = 100;
  add("the kernel's killer at the limit", in_load().signalled(SIGKILL), killer, Outcome::kCrashed,
      "oom", "load", "out of memory");
  killer.memory_limit_bytes = 1000;
  add("somebody's SIGKILL", in_load().signalled(SIGKILL), killer, Outcome::kCrashed, "signal",
      "load", "SIGKILL");

  TraceBuilder garbage = good_end();
  garbage.trace().bad_lines.push_back({"rank0", 3, "not JSON", "\x01\x02"});
  add("garbage lines", garbage, ended({worker()}), Outcome::kFailed, "protocol", "", "not JSON");
  add("no bye", TraceBuilder(good_run()).exited(), ended({worker()}), Outcome::kFailed, "protocol",
      "shutdown", "without bye");
  add("phases out of order",
      TraceBuilder().hello().phase("warmup").phase("load").ready().bye().exited(),
      ended({worker()}), Outcome::kFailed, "protocol", "load", "after phase warmup");
  TraceBuilder early = in_load();
  early.add("ready", {{"clock", "process"}}).end("load").phase("warmup").bye().exited();
  add("ready too early", early, ended({worker()}), Outcome::kFailed, "contract", "load",
      "ready-honest broke");
  add("phase failed, exit 0",
      TraceBuilder().hello().begin("load").end("load", 0, "failed").bye().exited(),
      ended({worker()}), Outcome::kFailed, "contract", "load", "starts broke");
  TraceBuilder left = good_end();
  left.add("leftover", {{"what", "process"}, {"pid", 7}, {"cmd", "daemon"}}, 0, "harness");
  add("a daemon stays", left, ended({worker()}), Outcome::kFailed, "contract", "shutdown",
      "nothing-left-behind");

  TraceBuilder orphan = good_end();
  orphan.add("process_end", {{"pid", 9999}, {"signal", SIGSEGV}}, 0, "harness");
  add("an orphan died by a signal", orphan, ended({worker()}), Outcome::kCrashed, "signal", "",
      "SIGSEGV");
  TraceBuilder setup;
  setup.add("setup_error", {{"message", "no memfd"}}).exited(0, 1);
  add("setup_error is no crash", setup, ended({worker(1)}), Outcome::kInfra, "setup", "",
      "no memfd");
  RunFacts interrupted = ended({worker(0, SIGTERM)});
  interrupted.workers[0].killed_by_us = true;
  interrupted.interrupted = true;
  add("SIGINT to us", in_load().signalled(SIGTERM, 0, true), interrupted, Outcome::kInfra,
      "interrupted", "", "interrupted");
  RunFacts infra;
  infra.infra_error = "cannot fork";
  add("could not start", TraceBuilder(), infra, Outcome::kInfra, "infra", "", "cannot fork");
  RunFacts skipped;
  skipped.skip_reason = "needs 2 GPUs, this machine has 0";
  add("skipped", TraceBuilder(), skipped, Outcome::kSkipped, "", "", "2 GPUs");
  return out;
}

TEST(Outcome, EachLiarHasItsOutcome) {
  for (const Liar& liar : liars()) {
    const RunRecord r = classified(liar.trace, liar.facts);
    EXPECT_EQ(to_string(r.outcome), to_string(liar.outcome)) << liar.name << ": " << r.reason;
    EXPECT_EQ(r.kind, liar.kind) << liar.name;
    if (*liar.phase != '\0') {
      EXPECT_EQ(r.phase, liar.phase) << liar.name;
    }
    EXPECT_NE(r.reason.find(liar.says), std::string::npos) << liar.name << ": " << r.reason;
  }
}

TEST(Outcome, CodeAndSignalApart) {
  const RunRecord nine = classified(TraceBuilder().hello().exited(0, 9), ended({worker(9)}));
  EXPECT_EQ(nine.exit_code, 9);
  EXPECT_EQ(nine.signal_name, "");
  const RunRecord killed =
      classified(TraceBuilder().hello().signalled(SIGKILL), ended({worker(0, SIGKILL)}));
  EXPECT_FALSE(killed.exit_code.has_value());
  EXPECT_EQ(killed.signal_name, "SIGKILL");
}

TEST(Outcome, CrashWinsOverWhateverElseBroke) {
  TraceBuilder t;
  t.hello().phase("warmup").phase("load").begin("serve").signalled(SIGSEGV);
  t.trace().bad_lines.push_back({"rank0", 9, "half a line", "{"});
  const RunRecord r = classified(t, ended({worker(0, SIGSEGV)}));
  EXPECT_EQ(r.outcome, Outcome::kCrashed);
  EXPECT_EQ(r.phase, "serve");
}

TEST(Outcome, TheFirstRankIsNamed) {
  TraceBuilder t(2);
  t.hello(0).hello(1).begin("profile", 0).begin("profile", 1);
  t.fault("AssertionError", "first", 1);
  t.fault("CollectiveError", "rank 1 failed", 0, {{"kind", "peer_failed"}});
  t.exited(0, 1).exited(1, 4);
  const RunRecord r = classified(t, ended({worker(1), worker(4, 0, 1)}));
  EXPECT_EQ(r.first_failed_rank, 1);
  EXPECT_EQ(r.exit_code, 4);
}

TEST(Outcome, AllowedFindingsDoNotFail) {
  RunRecord r;
  r.trace = good_end();
  r.contracts = {kept("protocol")};
  r.allowed.push_back({finding("keys-covered", "K"), "known", "", ""});
  classify(ended({worker()}), contract::View(r.trace), r);
  EXPECT_EQ(r.outcome, Outcome::kPassed);
  EXPECT_NE(r.reason.find("1 finding allowed"), std::string::npos);
}

TEST(Outcome, ProtocolDecidesBeforeWhatItExplains) {
  RunRecord r;
  r.trace = good_end();
  r.contracts = {broken("protocol", {"bye"}), broken("keys-valid", {"K", "L"})};
  classify(ended({worker()}), contract::View(r.trace), r);
  EXPECT_EQ(r.kind, "protocol");
  EXPECT_NE(r.reason.find("2 contracts in all"), std::string::npos);
}

TEST(Outcome, Words) {
  EXPECT_EQ(to_string(Outcome::kIncomplete), "incomplete");
  EXPECT_EQ(to_string(Verdict::kInconclusive), "INCONCLUSIVE");
  EXPECT_EQ(base_name("A[tp=2]"), "A");
  EXPECT_EQ(base_name("A"), "A");
  EXPECT_EQ(number_text(9222468), "9222468");
  EXPECT_EQ(number_text(8.79523), "8.79523");
  EXPECT_EQ(number_text(-0.5), "-0.5");
}

TEST(Worst, FirstPresentOfFailInfraInconclusivePass) {
  using enum Verdict;
  EXPECT_EQ(worst({kPass, kInconclusive, kInfra, kFail, kSkip}), kFail);
  EXPECT_EQ(worst({kPass, kInconclusive, kInfra, kSkip}), kInfra);
  EXPECT_EQ(worst({kPass, kInconclusive, kSkip}), kInconclusive);
  EXPECT_EQ(worst({kPass, kSkip}), kPass);
  EXPECT_EQ(worst({kSkip}), kSkip);
  EXPECT_EQ(worst({}), kSkip);
}

}  // namespace
}  // namespace warmgate::verdict
