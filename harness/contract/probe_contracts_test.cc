// code-ready and memory-kept, on what the probe recorded of a small torch engine on an H200
// (fixtures/probe/README.md), and on hand-written traces for what no recording has.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;
using ::testing::HasSubstr;

trace::Trace recorded(const std::string& name) {
  const std::filesystem::path file = std::filesystem::path(std::getenv("WARMGATE_SOURCE_DIR")) /
                                     "fixtures/probe/traces" / (name + ".jsonl");
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  trace::Trace trace;
  trace::LineReader reader(name, trace);
  reader.feed(text.str());
  reader.finish();
  EXPECT_FALSE(trace.events.empty()) << file;
  EXPECT_TRUE(trace.bad_lines.empty());
  trace.sort_by_time();
  return trace;
}

Result judged(const std::string& contract, const trace::Trace& trace) {
  return judge(*find_contract(contract), Context{trace, nullptr});
}

TEST(ProbeRecordings, ACleanEngineBreaksNothing) {
  const trace::Trace trace = recorded("clean");
  for (const char* contract : {"code-ready", "memory-kept"}) {
    const Result result = judged(contract, trace);
    EXPECT_EQ(result.state, State::kKept) << contract << ": " << result.why;
  }
  // torch's kernels that a capture needs first are loaded there, lazily: worth a line.
  EXPECT_EQ(judged("code-ready", trace).notes.size(), 1u);
}

TEST(ProbeRecordings, EveryFaultIsFoundAndNamed) {
  struct Fault {
    const char *recording, *contract, *key, *phase;
  };
  for (const Fault& fault :
       {Fault{"late-compile", "code-ready", "late/compress", "serve"},
        Fault{"capture-compile", "code-ready", "capture/compress", "capture"},
        Fault{"capture-synchronise", "code-ready", "capture/cuStreamSynchronize", "capture"},
        Fault{"late-allocation", "memory-kept", "after-ready", "serve"},
        Fault{"stale-graph", "memory-kept", "graph/device", "serve"}}) {
    const trace::Trace trace = recorded(fault.recording);
    for (const std::string contract : {"code-ready", "memory-kept"}) {
      const Result result = judged(contract, trace);
      if (contract != fault.contract) {
        EXPECT_EQ(result.state, State::kKept) << fault.recording << " " << contract;
        continue;
      }
      ASSERT_EQ(result.findings.size(), 1u) << fault.recording;
      EXPECT_EQ(result.findings[0].key, fault.key);
      EXPECT_EQ(result.findings[0].phase, fault.phase);
      EXPECT_FALSE(result.findings[0].events.empty());
    }
  }
}

// Loaded late, but compiled when torch was built: a note, no compilation.
TEST(ProbeRecordings, ALazyLoadIsNoCompilation) {
  const Result result = judged("code-ready", recorded("late-kernel"));
  EXPECT_EQ(result.state, State::kKept);
  ASSERT_EQ(result.notes.size(), 3u) << "one in the capture, two after ready";
  EXPECT_THAT(result.notes[1].message, HasSubstr("RadixSort"));
  EXPECT_THAT(result.notes[1].message, HasSubstr("of a library, loaded lazily"));
}

struct Probed : TraceBuilder {
  explicit Probed(bool attached = true) {
    hello();
    probe("probe", {{"status", attached ? "attached" : "not attached"}, {"reason", "why not"}});
  }
  Probed& probe(const std::string& ev, json body) {
    body["pid"] = body.value("pid", 1);
    add(ev, std::move(body), 0, "probe");
    return *this;
  }
  Probed& alloc(std::int64_t mib, int pid = 1) {
    return probe("alloc", {{"pool", "device"},
                           {"bytes", mib << 20},
                           {"pid", pid},
                           {"owner", "driver"},
                           {"lifetime", "until free"}});
  }
  Probed& freed(std::int64_t mib, json named_by = json::array()) {
    return probe("free", {{"pool", "device"},
                          {"bytes", mib << 20},
                          {"owner", "driver"},
                          {"address", "0x10"},
                          {"named_by", std::move(named_by)}});
  }
};

TEST(ProbeContracts, WithoutAProbeThereIsNothingToSay) {
  for (const char* contract : {"code-ready", "memory-kept"}) {
    EXPECT_EQ(judge_named(contract, TraceBuilder().hello().ready()).state, State::kNotApplicable);
    Probed blind(false);
    blind.ready();
    const Result result = judge_named(contract, blind);
    EXPECT_EQ(result.state, State::kNotObserved);
    EXPECT_THAT(result.why, HasSubstr("why not"));
    TraceBuilder asked;
    asked.hello().ready().add("probe", {{"status", "asked"}}, 0, "harness");
    EXPECT_EQ(judge_named(contract, asked).state, State::kNotObserved) << "no CUDA in it";
    TraceBuilder another;
    another.hello().ready().add("probe", {{"status", "asked"}, {"probes", {"python"}}}, 0,
                                "harness");
    EXPECT_EQ(judge_named(contract, another).state, State::kNotApplicable) << "not asked for";
    Probed never;
    never.begin("load");
    EXPECT_EQ(judge_named(contract, never).state, State::kNotObserved) << "never ready";
  }
}

TEST(MemoryKept, WhatIsExchangedIsNotMoreAndEachProcessCountsForItself) {
  Probed exchanged;
  exchanged.ready();
  for (int i = 0; i < 10; ++i) exchanged.alloc(60).freed(60);
  EXPECT_EQ(judge_named("memory-kept", exchanged).state, State::kKept);
  EXPECT_EQ(judge_named("memory-kept", exchanged).notes.size(), 1u);
  Probed two;
  two.ready();
  two.alloc(64, 1).alloc(64, 2);
  EXPECT_EQ(judge_named("memory-kept", two).state, State::kKept) << "64 MiB are allowed";
  two.alloc(1, 2);
  EXPECT_EQ(judge_named("memory-kept", two).findings.size(), 1u);
  Probed before;
  before.alloc(9000).ready();
  EXPECT_EQ(judge_named("memory-kept", before).state, State::kKept);
}

// A stale graph is one whenever it happens: an engine that never says ready has it all the same.
TEST(MemoryKept, AGraphThatLosesItsMemoryNeedsNoReady) {
  Probed t;
  t.freed(20, {"0xe0", "0xe1"});
  const Result result = judge_named("memory-kept", t);
  EXPECT_EQ(result.state, State::kBroken);
  EXPECT_THAT(result.findings.at(0).message, HasSubstr("2 captured graphs still name them"));
}

TEST(ProbeContracts, NonsenseBreaksNothingAndThrowsNothing) {
  Probed t;
  t.probe("module", {{"bytes", "many"}, {"names", 7}, {"in_capture", 1}});
  t.probe("sync", json::object()).probe("free", {{"named_by", "graph"}, {"bytes", -5}});
  t.probe("alloc", {{"bytes", 1e300}}).ready();
  for (const char* contract : {"code-ready", "memory-kept"})
    EXPECT_EQ(judge_named(contract, t).state, State::kKept) << contract;
}

}  // namespace
}  // namespace warmgate::contract
