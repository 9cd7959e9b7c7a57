// keys-valid, keys-reachable, keys-covered.
#include <gtest/gtest.h>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

scenario::Resolved with_archs(std::vector<std::string> archs) {
  scenario::Resolved resolved;
  resolved.architectures = std::move(archs);
  return resolved;
}

TEST(KeysValid, Kept) {
  const Result result = judge_named("keys-valid", good_end());
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_EQ(result.why, "");
}

TEST(KeysValid, OneFindingPerKeyOverHostAndArchitectures) {
  TraceBuilder t;
  t.hello().begin("warmup");
  // The engine compiled leniently and was content.
  t.compile("K{R=0}", "warmup").compile("K{R=1}", "warmup").end("warmup").bye().exited();
  t.check("K{R=0}", false).check("K{R=1}", true);
  for (const char* arch : {"sm_80", "sm_100a"}) {
    t.compile("K{R=0}", "warmup", "failed", arch, "harness");
    t.compile("K{R=1}", "warmup", "ok", arch, "harness");
  }
  const scenario::Resolved resolved = with_archs({"sm_90a", "sm_80", "sm_100a"});
  const Result result = judge_named("keys-valid", t, &resolved);
  ASSERT_EQ(result.findings.size(), 1u);
  const Finding& f = result.findings[0];
  EXPECT_EQ(f.key, "K{R=0}");
  EXPECT_EQ(f.count, 3u);
  EXPECT_NE(f.seen.find("host: division by zero"), std::string::npos) << f.seen;
  EXPECT_NE(f.seen.find("sm_100a, sm_80"), std::string::npos) << f.seen;
  EXPECT_EQ(f.detail["failed"].size(), 2u);
  EXPECT_EQ(result.why, "");
}

TEST(KeysValid, TheHarnesssCompilesWarmNothing) {
  TraceBuilder t;
  t.hello().phase("warmup").bye().exited();
  t.compile("K{R=0}", "warmup", "failed", "sm_80", "harness").check("K{R=0}", false);
  EXPECT_EQ(judge_named("keys-valid", t).state, State::kKept);
}

TEST(KeysValid, AFirstFailureDoesNotHideTheKeysAfterIt) {
  TraceBuilder t;
  t.hello().begin("warmup").add("asked", {{"kernel", "K"}, {"keys", {"K{A=0}", "K{B=0}", 7}}});
  t.compile("K{A=0}", "warmup", "failed").end("warmup");
  t.check("K{A=0}", false).check("K{B=0}", false);
  EXPECT_EQ(judge_named("keys-valid", t).findings.size(), 2u);
}

TEST(KeysValid, HalfAnAnswerIsNone) {
  TraceBuilder t;
  t.hello().begin("warmup").compile("K{R=4}", "warmup").compile("K{R=1}", "warmup");
  t.end("warmup").check("K{R=1}", true);
  const Result result = judge_named("keys-valid", t);
  EXPECT_EQ(result.state, State::kNotObserved);
  EXPECT_EQ(result.missing, std::vector<std::string>{"check"});
  EXPECT_NE(result.why.find("1 warmed key without"), std::string::npos);
}

TEST(KeysValid, WithoutACompilerTheHostHalfSpeaks) {
  TraceBuilder t;
  t.hello().begin("warmup");
  t.add("compile", {{"kernel", "K"},
                    {"key", "K{R=1}"},
                    {"arch", "sm_90a"},
                    {"source", "compiler"},
                    {"status", "ok"},
                    {"backend", "host"}});
  t.end("warmup").check("K{R=1}", true);
  const scenario::Resolved resolved = with_archs({"sm_90a"});
  const Result result = judge_named("keys-valid", t, &resolved);
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_EQ(result.why, "not compiled strictly for sm_90a");
}

TEST(KeysValid, AHostBackEndsFailureIsTheHosts) {
  TraceBuilder t;
  t.hello().begin("warmup");
  t.add("compile", {{"kernel", "K"},
                    {"key", "K{R=0}"},
                    {"arch", "sm_90a"},
                    {"source", "compiler"},
                    {"status", "failed"},
                    {"backend", "host"},
                    {"log", "x / 0"}});
  t.end("warmup").check("K{R=0}", false);
  const Result result = judge_named("keys-valid", t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].count, 1u);
  EXPECT_TRUE(result.findings[0].detail["failed"].empty());
}

TEST(KeysValid, NotObserved) {
  TraceBuilder t;
  t.hello(0, {"compile"}).phase("warmup").bye().exited();
  EXPECT_EQ(judge_named("keys-valid", t).missing, std::vector<std::string>{"check"});
  TraceBuilder early;  // ended before warmup: nothing to say, not kept
  early.hello().phase("load").exited(0, 1);
  EXPECT_EQ(judge_named("keys-valid", early).state, State::kNotObserved);
}

TEST(KeysReachable, NotesWhatTheDispatcherCannotProduce) {
  TraceBuilder t = good_end();
  EXPECT_TRUE(judge_named("keys-reachable", t).notes.empty());
  TraceBuilder more;
  more.hello().begin("warmup").add("domain", {{"kernel", "K"}, {"keys", {"K{A=1}", 7, nullptr}}});
  more.compile("K{A=1}", "warmup").compile("K{A=9}", "warmup").compile("L{A=9}", "warmup");
  const Result result = judge_named("keys-reachable", more);
  EXPECT_EQ(result.state, State::kKept);  // never more than a note
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(result.notes[0].key, "K{A=9}");
  EXPECT_EQ(result.why, "no domain told for L");
}

TEST(KeysReachable, NotObservedWithoutADomain) {
  TraceBuilder t;
  t.hello().begin("warmup").compile("K{A=1}", "warmup");
  EXPECT_EQ(judge_named("keys-reachable", t).state, State::kNotObserved);
  TraceBuilder mute;
  mute.hello(0, {"compile"});
  EXPECT_EQ(judge_named("keys-reachable", mute).missing, std::vector<std::string>{"domain"});
}

TEST(KeysCovered, Kept) { EXPECT_EQ(judge_named("keys-covered", good_end()).state, State::kKept); }

TEST(KeysCovered, LaunchedNeverWarmedAndCompiledLate) {
  TraceBuilder t = good_run();
  t.begin("serve").launch("K", "K{A=2}", "serve").compile("K{A=2}", "serve").end("serve");
  const Result result = judge_named("keys-covered", t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "K{A=2}");
  EXPECT_EQ(result.findings[0].seen, "launched, never warmed; compiled after ready");
  EXPECT_EQ(result.findings[0].layer_kind, "c4a");
}

TEST(KeysCovered, AFailedCompileDoesNotCover) {
  TraceBuilder t;
  t.hello().begin("warmup").compile("K{A=1}", "warmup", "failed").end("warmup").begin("serve");
  t.launch("K", "K{A=1}", "serve").end("serve");
  EXPECT_EQ(judge_named("keys-covered", t).findings.at(0).seen,
            "launched, its compile in warmup failed");
}

TEST(KeysCovered, AskedForIsNotCompiled) {
  TraceBuilder t;
  t.hello().begin("warmup").add("asked", {{"kernel", "K"}, {"keys", {"K{A=0}", "K{A=1}"}}});
  t.compile("K{A=0}", "warmup", "failed").end("warmup").begin("serve");  // and K{A=1} never
  t.launch("K", "K{A=1}", "serve").end("serve");
  EXPECT_EQ(judge_named("keys-covered", t).findings.at(0).seen,
            "launched; warmup asked for it and never came to compile it");
}

TEST(KeysCovered, TheDiskIsNoLateCompilation) {
  TraceBuilder t = good_run();
  t.compile("K{A=4}", "serve", "ok", "sm_90a", "channel", 0, "disk");
  t.compile("K{A=4}", "serve", "ok", "sm_90a", "channel", 0, "memory");
  EXPECT_EQ(judge_named("keys-covered", t).state, State::kKept);
  t.compile("K{A=4}", "serve", "ok", "sm_90a", "channel", 0, "compiler");
  EXPECT_EQ(judge_named("keys-covered", t).findings.at(0).seen,
            "launched, compiled again; compiled after ready");
}

TEST(KeysCovered, EachRankForItself) {
  TraceBuilder t(2);
  t.hello(0).hello(1).begin("warmup", 0).compile("K{A=1}", "warmup").end("warmup", 0);
  t.begin("serve", 0).begin("serve", 1).launch("K", "K{A=1}", "serve", "c4a", 0);
  t.launch("K", "K{A=1}", "serve", "c4a", 1);
  const Result result = judge_named("keys-covered", t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rank, 1);
}

TEST(KeysCovered, NotObservedBeforeServing) {
  TraceBuilder t;
  t.hello().begin("warmup").compile("K{A=1}", "warmup").exited(0, 1);
  EXPECT_EQ(judge_named("keys-covered", t).state, State::kNotObserved);
  TraceBuilder mute;
  mute.hello(0, {"compile"}).begin("serve");
  EXPECT_EQ(judge_named("keys-covered", mute).missing, std::vector<std::string>{"launch"});
}

class Plugin : public TraceBuilder {
 public:
  Plugin() {
    hello(0, {"phase_begin", "phase_end", "ready", "step"});
    plugin("hello",
           {{"schema", "events/1.0"}, {"engine", "p"}, {"pid", 7}, {"emits", {"compile"}}});
    plugin("probe", {{"status", "attached"}});
  }
  Plugin& plugin(const std::string& ev, json body) {
    add(ev, std::move(body), 0, "python");
    return *this;
  }
  Plugin& compiled(const std::string& key, const std::string& source) {
    return plugin("compile", {{"kernel", key.substr(0, key.find('{'))},
                              {"key", key},
                              {"arch", "sm_90"},
                              {"source", source},
                              {"status", "ok"}});
  }
  Plugin& served() {
    begin("serve").add("step", {{"id", 1}, {"kind", "real"}, {"rows", 1}, {"requests", 1}});
    return *this;
  }
};

TEST(KeysCovered, APluginSeesTheCompilerAfterReady) {
  Plugin t;
  t.begin("warmup");
  t.compiled("compress{RATIO=4}", "compiler").end("warmup").ready();
  t.served().compiled("compress{RATIO=8}", "disk").compiled("compress{RATIO=128}", "compiler");
  t.end("serve").bye().exited();
  const Result result = judge_named("keys-covered", t);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "compress{RATIO=128}");
  EXPECT_EQ(result.findings[0].phase, "serve");
  EXPECT_EQ(judge_named("protocol", t).state, State::kKept) << "the plugin owes no bye";
}

TEST(KeysCovered, WhatAPluginSawBeforeReadyIsNotLateWhateverThePhase) {
  Plugin clean;
  clean.begin("load");
  clean.compiled("a{}", "compiler").end("load").ready();
  clean.served().compiled("a{}", "disk").end("serve").bye().exited();
  EXPECT_EQ(judge_named("keys-covered", clean).state, State::kKept);
  // The worker's last phase is warmup where the front end says ready; still late.
  Plugin worker;
  worker.begin("warmup").end("warmup").add("ready", {{"clock", "health"}}, 0, "http");
  worker.compiled("b{}", "compiler").served().end("serve");
  const Result result = judge_named("keys-covered", worker);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "b{}");
  Plugin never;
  never.begin("warmup");
  never.compiled("c{}", "compiler");
  EXPECT_EQ(judge_named("keys-covered", never).state, State::kNotObserved);
}

// Two workers of one command: a plugin knows its pid, the engine's hello whose that is.
TraceBuilder two_workers(std::int64_t pid, const std::string& ev, json body) {
  TraceBuilder t;
  for (int rank : {0, 1}) t.hello(rank, {"phase_begin", "phase_end", "ready", "step", "compile"});
  t.add("probe", {{"status", "attached"}}, -1, "python");
  t.begin("warmup", 0).end("warmup", 0).ready(0).begin("serve", 0);
  body["pid"] = pid;
  t.add(ev, std::move(body), -1, "python");
  t.begin("warmup", 1).end("warmup", 1).ready(1).begin("serve", 1);
  t.add("step", {{"id", 1}, {"kind", "real"}, {"rows", 1}, {"requests", 1}}, 1);
  return t;
}

TEST(KeysCovered, OneWorkersReadyIsNotTheOthers) {
  const auto compiled_by = [](std::int64_t pid) {
    return two_workers(pid, "compile",
                       {{"kernel", "k"},
                        {"key", "k{}"},
                        {"arch", "sm_90"},
                        {"source", "compiler"},
                        {"status", "ok"}});
  };
  const Result late = judge_named("keys-covered", compiled_by(100));
  ASSERT_EQ(late.findings.size(), 1u);
  EXPECT_EQ(late.findings[0].rank, 0);
  EXPECT_EQ(judge_named("keys-covered", compiled_by(101)).findings.size(), 0u) << "not ready yet";
  EXPECT_EQ(judge_named("keys-covered", compiled_by(7)).findings.size(), 0u) << "before the last";
}

TEST(KeysCovered, TheFileOfACompilationThatWasSeenIsNotToldAgain) {
  Plugin t;
  t.ready();
  t.served().compiled("compress{RATIO=128}", "compiler");
  for (const char* kernel : {"compress", "other"})
    t.add("compile",
          {{"kernel", kernel},
           {"key", std::string("triton:") + kernel},
           {"arch", ""},
           {"source", "compiler"},
           {"status", "seen"},
           {"phase", "serve"}},
          0, "census");
  t.end("serve");
  std::vector<std::string> found;
  for (const Finding& f : judge_named("keys-covered", t).findings) found.push_back(f.key);
  EXPECT_EQ(found, (std::vector<std::string>{"compress{RATIO=128}", "triton:other"}));
}

}  // namespace
}  // namespace warmgate::contract
