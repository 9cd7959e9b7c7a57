// What is gathered of processes that hang, from real ones: a worker, a Python program that waits
// for the signal of its plugin, a table of calls as a probe leaves it.
#include "harness/target/hang/hang_evidence.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <memory>

#include "harness/target/hang/last_calls.h"
#include "harness/target/hang/threads.h"
#include "harness/target/test_support.h"
#include "harness/trace/wire.h"
#include "harness/trace/wire_calls.h"

namespace warmgate::target::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(HangEvidence, OfAWorkerThatSleeps) {
  const TempDir dir;
  TargetSpec spec = spec_of({liar("hang-silent")}, dir.path());
  spec.deadlines.silence_s = 0.2;
  const TargetResult result = run_clean(spec);
  ASSERT_TRUE(result.hung);
  const auto hangs = result.trace.of("hang");
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hangs[0]->num("pid"), result.workers[0].pid);
  EXPECT_EQ(hangs[0]->rank, 0);
  EXPECT_EQ(hangs[0]->str("state"), "S");
  EXPECT_THAT(hangs[0]->str("process"), HasSubstr("worker_liar"));
  EXPECT_THAT(hangs[0]->strings("how"), ElementsAre("proc"));
  EXPECT_FALSE(hangs[0]->str("waits").empty());
  EXPECT_EQ(result.trace.of("stack").size(),
            static_cast<std::size_t>(hangs[0]->num("thread_count")));
}

// As the plugin in a Python process does it: tells a signal and a file, and goes on.
constexpr const char* kProgram = R"(
import faulthandler, json, os, signal, time
number = signal.SIGRTMIN + 7
folder = os.environ["WARMGATE_EVENTS_DIR"]
out = open(os.path.join(folder, "mine.stacks"), "w")
faulthandler.register(number, file=out, all_threads=True, chain=False)
with open(os.path.join(folder, "h.%d.1.jsonl" % os.getpid()), "w") as events:
    for line in ({"ev": "hello", "schema": "events/1.0", "engine": "p", "pid": os.getpid(), "emits": []},
                 {"ev": "probe", "status": "attached", "pid": os.getpid(), "stacks_signal": number,
                  "stacks_file": "mine.stacks", "stacks_fd": out.fileno()}):
        events.write(json.dumps({"src": "python", "t": time.monotonic_ns(), **line}) + "\n")
def waits_for_ever():
    time.sleep(60)
waits_for_ever()
)";

TEST(HangEvidence, OfAPythonProgramThatItsPluginToldOf) {
  const TempDir dir;
  WorkerSpec worker;
  worker.argv = {"sh", "-c", "python3 -c \"$PROGRAM\"; true"};  // the interpreter is a descendant
  worker.env["PROGRAM"] = kProgram;
  TargetSpec spec = spec_of({worker}, dir.path());
  spec.deadlines.silence_s = 1.0;
  const TargetResult result = run_clean(spec);
  ASSERT_TRUE(result.hung);
  std::vector<std::string> frames;
  for (const trace::Event* e : result.trace.of("hang")) {
    for (const std::string& frame : e->strings("frames")) frames.push_back(frame);
  }
  EXPECT_THAT(frames, Contains(HasSubstr("waits_for_ever (")));
  EXPECT_EQ(result.trace.of("hang").size(), 2u) << "the shell and what it started";
}

// The same after an exec: the handler is gone, and the signal would end what took its place.
TEST(HangEvidence, WhatAnExecTookThePlaceOfGetsNoSignal) {
  const TempDir dir;
  WorkerSpec worker;
  worker.argv = {
      "python3", "-c",
      std::string(kProgram).replace(
          std::string(kProgram).rfind("waits_for_ever()"), 16,
          "os.execvp('sh', ['sh', '-c', 'trap \"exit 7\" TERM; while :; do sleep 0.05; done'])")};
  TargetSpec spec = spec_of({worker}, dir.path());
  spec.deadlines.silence_s = 1.0;
  const TargetResult result = run_clean(spec);
  ASSERT_TRUE(result.hung);
  EXPECT_EQ(result.workers[0].signal, 0) << "no signal but SIGTERM, which it handles";
  ASSERT_FALSE(result.trace.of("hang").empty());
  EXPECT_THAT(result.trace.of("hang")[0]->strings("missing"),
              Contains("faulthandler: the process listens no more"));
}

TEST(HangEvidence, PipesAndLinksInTheFolderAreNotWaitedFor) {
  const TempDir dir;
  const std::string number = std::to_string(::getpid());
  ASSERT_EQ(::mkfifo((dir.path() / (trace::kCallTableFile + number)).c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", dir.path() / (std::string("core.") + number));
  const auto events = hang_evidence({{::getpid(), "test", std::nullopt}}, dir.path(), {},
                                    std::chrono::milliseconds(50));
  EXPECT_EQ(events.at(0).ev, "hang");
}

TEST(HangEvidence, AForeignProcessGetsNoSignal) {
  const TempDir dir;
  trace::Trace trace;
  const std::int64_t nobody = 1;  // not of this run
  trace.events.push_back(trace::harness_event(
      "probe", {{"pid", nobody}, {"stacks_signal", 41}, {"stacks_file", "../escape"}}));
  trace.events.push_back(trace::harness_event(
      "probe", {{"pid", ::getpid()}, {"stacks_signal", 9}, {"stacks_file", "mine"}}));
  const auto events = hang_evidence({{::getpid(), "test", std::nullopt}}, dir.path(), trace,
                                    std::chrono::milliseconds(0));
  ASSERT_FALSE(events.empty()) << "and this process lives: only real-time signals are sent";
  EXPECT_EQ(events[0].ev, "hang");
}

TEST(HangEvidence, TheCallOfTheDriverComesOutOfTheProbesTable) {
  const TempDir dir;
  const auto table = std::make_unique<trace::CallTableFile>();
  std::memcpy(table->head.magic, trace::kCallTableMagic, 8);
  table->head.pid = ::getpid();
  table->head.slot_bytes = sizeof(trace::CallSlot);
  table->slots[0].tid = 11;
  table->slots[0].since_ns = trace::now_ns() - 2'000'000'000;
  std::strcpy(table->slots[0].call, "cuStreamSynchronize");
  table->slots[3].tid = 12;
  std::strcpy(table->slots[3].call, "cuGraphLaunch");
  const fs::path file = dir.path() / (trace::kCallTableFile + std::to_string(::getpid()));
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(table.get()), sizeof *table);
  const auto events =
      hang_evidence({{::getpid(), "test", 3}}, dir.path(), {}, std::chrono::milliseconds(0));
  EXPECT_EQ(events.at(0).str("call"), "cuStreamSynchronize");
  EXPECT_GE(events.at(0).real("inside_s"), 2);
  EXPECT_EQ(events.at(0).rank, 3);
  EXPECT_THAT(events.at(0).strings("how"), ElementsAre("proc", "probe"));
  std::ofstream(file) << "short";
  EXPECT_FALSE(read_last_calls(file, 0));
  EXPECT_FALSE(read_last_calls(dir.path() / "none", 0));
}

TEST(HangEvidence, AThreadSaysItsNameAndWhatItWaitsIn) {
  const auto threads = threads_of(::getpid());
  ASSERT_FALSE(threads.empty());
  EXPECT_EQ(threads[0].tid, ::getpid());
  EXPECT_FALSE(threads[0].name.empty());
  EXPECT_THAT(threads_of(0x7fffffff), IsEmpty());
  EXPECT_EQ(system_call_name(123456), "system call 123456");
}

}  // namespace
}  // namespace warmgate::target::testing
