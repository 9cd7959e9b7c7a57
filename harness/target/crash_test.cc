// Workers that die: signal and code apart, causes before echoes, lack of memory recognised.
#include <gmock/gmock.h>
#include <signal.h>

#include "harness/target/test_support.h"

namespace warmgate::target::testing {
namespace {

using ::testing::HasSubstr;

struct Death {
  const char* mode;
  int signal, exit_code;
};

void PrintTo(const Death& death, std::ostream* out) { *out << death.mode; }

class Dies : public ::testing::TestWithParam<Death> {};

TEST_P(Dies, WithItsSignalOrCode) {
  const TargetResult result = run_mode(GetParam().mode);
  const verdict::WorkerEnd& end = result.workers.at(0);
  EXPECT_EQ(end.signal, GetParam().signal);
  EXPECT_EQ(end.exited, GetParam().signal == 0);
  EXPECT_EQ(end.exit_code, GetParam().exit_code);
  EXPECT_FALSE(end.killed_by_us);
  EXPECT_FALSE(end.needed_sigkill);
  EXPECT_FALSE(result.hung);
  EXPECT_EQ(result.first_failed_rank, 0);
  const trace::Event& event = *result.trace.of("process_end").at(0);
  EXPECT_EQ(event.src, "harness");
  EXPECT_EQ(event.num("signal"), GetParam().signal);
  EXPECT_EQ(event.num("exit_code"), GetParam().exit_code);
  EXPECT_EQ(event.body.contains("signal"), GetParam().signal != 0);
  EXPECT_FALSE(event.flag("oom"));
  EXPECT_TRUE(result.trace.of("leftover").empty());
}

INSTANTIATE_TEST_SUITE_P(All, Dies,
                         ::testing::Values(Death{"sigsegv", SIGSEGV, 0}, Death{"abort", SIGABRT, 0},
                                           Death{"assert", SIGABRT, 0},
                                           Death{"sigkill", SIGKILL, 0}, Death{"exit3", 0, 3},
                                           Death{"exit9", 0, 9}, Death{"exit127", 0, 127},
                                           Death{"before-hello", 0, 127}));

TEST(Crash, TheMessageOfAnAssertIsKept) {
  const TargetResult result = run_mode("assert");
  ASSERT_EQ(result.outputs.at(1).stream, "stderr");
  ASSERT_EQ(result.outputs[1].matched.size(), 1u);
  EXPECT_THAT(result.outputs[1].matched[0], HasSubstr("blocks > 0"));
}

TEST(Crash, GrandchildDeadInMidLine) {
  const TargetResult result = run_mode("grandchild-mid-line");
  EXPECT_EQ(result.workers.at(0).exit_code, 1);
  ASSERT_EQ(result.trace.bad_lines.size(), 1u);
  EXPECT_THAT(result.trace.bad_lines[0].why, HasSubstr("half a line"));
  EXPECT_THAT(result.trace.bad_lines[0].source, ::testing::StartsWith("core."));
  EXPECT_EQ(result.trace.of("hello").size(), 2u);
}

TEST(Crash, AMemoryLimitIsRecognised) {
  const TempDir dir;
  // A sanitizer's shadow does not fit into any limit, so there Python takes the memory.
  TargetSpec spec = spec_of(
      {kSanitized ? worker({"python3", "-c", "x = bytearray(1 << 40)"}) : liar("memory-hog")},
      dir.path());
  spec.memory_bytes = 256 << 20;
  const TargetResult result = run_clean(spec);
  const trace::Event& end = *result.trace.of("process_end").at(0);
  EXPECT_TRUE(end.flag("oom")) << end.body.to_json().dump();
  EXPECT_THAT(end.str("oom_evidence"), HasSubstr("stderr: "));
  EXPECT_EQ(end.num("memory_limit_bytes"), 256 << 20);
  EXPECT_EQ(result.first_failed_rank, 0);
}

TEST(Crash, OneFailureEndsTheOthersAndIsNamed) {
  const TempDir dir;
  const TargetResult result = run_clean(spec_of(
      {liar("hang-silent", 0, 3), liar("exit3", 1, 3), liar("ignore-sigterm", 2, 3)}, dir.path()));
  EXPECT_EQ(result.first_failed_rank, 1);
  EXPECT_FALSE(result.hung);
  EXPECT_EQ(result.workers[1].exit_code, 3);
  EXPECT_FALSE(result.workers[1].killed_by_us);
  EXPECT_TRUE(result.workers[0].killed_by_us);
  EXPECT_FALSE(result.workers[0].needed_sigkill);
  EXPECT_EQ(result.workers[0].signal, SIGTERM);
  EXPECT_TRUE(result.workers[2].needed_sigkill);
  EXPECT_EQ(result.workers[2].signal, SIGKILL);
  EXPECT_LT(result.wall_s, 5);
}

TEST(Crash, AnEchoWithinTheGraceKeepsItsWords) {
  const TempDir dir;
  TargetSpec spec = spec_of({liar("echo", 0, 2), liar("sigkill", 1, 2)}, dir.path());
  spec.workers[0].argv.insert(spec.workers[0].argv.end(), {"--ms", "500"});
  spec.deadlines.peer_grace_s = 20;
  const TargetResult result = run_clean(spec);
  EXPECT_EQ(result.first_failed_rank, 1);
  EXPECT_FALSE(result.workers[0].killed_by_us);
  EXPECT_EQ(result.trace.of("fault").size(), 1u);
  // Ends stand in the trace in the order in which they happened.
  const auto ends = result.trace.of("process_end");
  EXPECT_EQ(ends.at(0)->rank, 1);
  EXPECT_EQ(ends.at(1)->rank, 0);
}

TEST(Crash, WhatCannotBeStartedIsNotACrash) {
  for (const char* program : {"/no/such/program", "no-such-program-in-path", "/etc/passwd"}) {
    const TempDir dir;
    const CancelToken cancel;
    ensure_guard();
    const int before = open_descriptors();
    const TargetResult result =
        run_target(spec_of({liar("hang-silent", 0, 2), worker({program}, 1)}, dir.path()), cancel);
    EXPECT_THAT(result.infra_error, HasSubstr(program));
    EXPECT_EQ(result.first_failed_rank, -1);
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_TRUE(marked_processes().empty());
    EXPECT_EQ(zombies(), 0);
  }
}

TEST(Crash, AMissingWorkingFolderIsNamed) {
  const TempDir dir;
  const CancelToken cancel;
  TargetSpec spec = spec_of({honest()}, dir.path());
  spec.workers[0].cwd = "/no/such/folder";
  EXPECT_THAT(run_target(spec, cancel).infra_error, HasSubstr("/no/such/folder"));
}

TEST(Crash, NothingToStart) {
  const TempDir dir;
  const CancelToken cancel;
  EXPECT_EQ(run_target(spec_of({}, dir.path()), cancel).infra_error, "nothing to start");
}

TEST(SignalName, KnownAndUnknown) {
  EXPECT_EQ(signal_name(11), "SIGSEGV");
  EXPECT_EQ(signal_name(31), "SIGSYS");
  EXPECT_EQ(signal_name(64), "signal 64");
  EXPECT_EQ(signal_name(0), "signal 0");
  EXPECT_EQ(signal_name(-3), "signal -3");
}

}  // namespace
}  // namespace warmgate::target::testing
