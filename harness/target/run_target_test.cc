// What a run gives when all goes well, and when the lie is in what is said, printed or left behind.
#include "harness/target/target.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "harness/target/test_support.h"

namespace warmgate::target::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

bool ended_well(const TargetResult& result) {
  return !result.hung && !result.interrupted && result.infra_error.empty() &&
         result.first_failed_rank == -1 &&
         std::all_of(result.workers.begin(), result.workers.end(),
                     [](const auto& w) { return w.exited && w.exit_code == 0 && !w.killed_by_us; });
}

TEST(Honest, TwoRanks) {
  const TempDir dir;
  TargetSpec spec = spec_of({honest(0, 2), honest(1, 2)}, dir.path());
  for (WorkerSpec& worker : spec.workers) {
    worker.argv.insert(worker.argv.end(), {"--phase-ms", "5"});
  }
  const TargetResult result = run_clean(spec);
  EXPECT_TRUE(ended_well(result));
  EXPECT_TRUE(result.trace.bad_lines.empty());
  EXPECT_EQ(result.trace.of("hello").size(), 2u);
  EXPECT_EQ(result.trace.of("bye").size(), 2u);
  EXPECT_EQ(result.trace.of("phase_end").size(), 18u);
  EXPECT_TRUE(result.trace.of("leftover").empty());
  EXPECT_EQ(result.trace.world, 2);
  EXPECT_TRUE(std::is_sorted(result.trace.events.begin(), result.trace.events.end(),
                             [](const auto& a, const auto& b) { return a.t_ns < b.t_ns; }));
  for (const verdict::WorkerEnd& end : result.workers) {
    EXPECT_GT(end.pid, 0);
    EXPECT_GT(end.wall_s, 0);
    EXPECT_GT(end.peak_rss_bytes, 500000) << "sampled at the end of phases";
  }
  EXPECT_THAT(result.outputs.at(0).head, HasSubstr("phase bootstrap\nphase load\n"));
  EXPECT_EQ(result.outputs[1].bytes, 0u);
}

TEST(Honest, WithoutTheSlightestLeakOverManyRuns) {
  for (int i = 0; i < 20; ++i) {
    const TempDir dir;
    ASSERT_TRUE(ended_well(run_clean(spec_of({honest()}, dir.path()))));
  }
}

TEST(Honest, ProgressTellsPhasesAndTheEnd) {
  const TempDir dir;
  const CancelToken cancel;
  std::vector<std::string> seen;
  run_target(spec_of({honest()}, dir.path()), cancel, [&](int rank, std::string_view phase) {
    EXPECT_EQ(rank, 0);
    seen.emplace_back(phase);
  });
  EXPECT_THAT(seen, ::testing::ElementsAre("bootstrap", "load", "profile", "kv", "warmup",
                                           "capture", "ready", "serve", "shutdown", "ended"));
}

TEST(Inherited, NothingButWhatWasGiven) {
  // An open descriptor without close-on-exec, an ignored and a blocked signal: none arrives.
  const int leak = ::open("/dev/null", O_RDONLY);
  const int given = ::memfd_create("given", MFD_CLOEXEC);
  ::signal(SIGUSR2, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t block, before;
  ::sigemptyset(&block);
  ::sigaddset(&block, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &block, &before);
  const TempDir dir;
  TargetSpec spec = spec_of({liar("inherited")}, dir.path());
  spec.workers[0].inherit_fds = {given};
  const TargetResult result = run_clean(spec);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGUSR2, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  ::close(leak);
  ::close(given);
  EXPECT_EQ(result.outputs.at(0).head,
            "fd 0\nfd 1\nfd 2\nfd " + std::to_string(given) + "\ngroup own\nstdin empty\n");
}

TEST(Inherited, EnvironmentFolderAndScratch) {
  const TempDir dir;
  ::setenv("WARMGATE_EVENTS_FD", "77:1", 1);  // of an outer run
  TargetSpec spec = spec_of({worker({"sh", "-c",
                                     "echo $A; pwd; echo $TMPDIR; env | grep -c "
                                     "^WARMGATE_EVENTS_FD=77"})},
                            dir.path());
  spec.workers[0].env["A"] = "x y";
  spec.workers[0].cwd = "/usr";
  const TargetResult result = run_clean(spec);
  ::unsetenv("WARMGATE_EVENTS_FD");
  EXPECT_EQ(result.outputs.at(0).head, "x y\n/usr\n" + (dir.path() / "tmp").string() + "\n0\n");
}

TEST(Lines, Garbage) {
  const TargetResult result = run_mode("garbage");
  EXPECT_TRUE(ended_well(result));
  EXPECT_GE(result.trace.bad_lines.size(), 6u);
  EXPECT_EQ(result.trace.of("bye").size(), 1u) << "what follows is read all the same";
}

TEST(Lines, HalfALine) {
  const TargetResult result = run_mode("half-line");
  ASSERT_EQ(result.trace.bad_lines.size(), 1u);
  EXPECT_THAT(result.trace.bad_lines[0].why, HasSubstr("half a line"));
}

TEST(Lines, AHundredMegabytes) {
  const TargetResult result = run_mode("long-line");
  ASSERT_EQ(result.trace.bad_lines.size(), 1u);
  EXPECT_THAT(result.trace.bad_lines[0].why, HasSubstr("1 MiB"));
  EXPECT_EQ(result.trace.of("bye").size(), 1u);
}

TEST(Lines, AFlood) {
  const TargetResult result = run_mode("event-flood");
  EXPECT_TRUE(ended_well(result));
  ASSERT_FALSE(result.trace.bad_lines.empty());
  EXPECT_THAT(result.trace.bad_lines[0].why, HasSubstr("20,000"));
  EXPECT_LE(result.trace.events.size(), 20200u);
}

TEST(Lines, AClosedChannelIsNoHang) {
  const TargetResult result = run_mode("closed-channel");
  EXPECT_TRUE(ended_well(result));
  EXPECT_TRUE(result.trace.of("bye").empty());
}

TEST(Lines, NoByeOrderAndReadyAreForContractsToJudge) {
  EXPECT_TRUE(run_mode("no-bye").trace.of("bye").empty());
  EXPECT_EQ(run_mode("ready-early").trace.of("ready").size(), 2u);
  const TargetResult result = run_mode("out-of-order");
  EXPECT_TRUE(ended_well(result));
  EXPECT_EQ(result.trace.of("phase_begin").at(1)->str("phase"), "profile");
}

TEST(Leftover, ADaemonIsNamedAndEnded) {
  const TargetResult result = run_mode("daemon");
  EXPECT_TRUE(ended_well(result));
  const auto left = result.trace.of("leftover");
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0]->str("what"), "process");
  EXPECT_EQ(left[0]->str("cmd"), "sleep 1000");
  EXPECT_GE(result.wall_s, 0.6) << "it had its time to vanish";
}

TEST(Leftover, ADaemonThatForgotItsNameHoldsOurPipe) {
  const TargetResult result = run_mode("daemon-nameless");
  const auto left = result.trace.of("leftover");
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0]->str("cmd"), "sleep 1000");
  ProcessInfo info;
  EXPECT_FALSE(read_process(static_cast<pid_t>(left[0]->num("pid")), info));
}

TEST(Leftover, AChildThatLeavesInTimeIsNone) {
  const TargetResult result = run_mode("slow-child");
  EXPECT_TRUE(ended_well(result));
  EXPECT_TRUE(result.trace.of("leftover").empty());
  EXPECT_LT(result.wall_s, 3);
}

TEST(Leftover, ManyShortChildren) { EXPECT_TRUE(ended_well(run_mode("many-children"))); }

TEST(Leftover, AFileInTheScratchFolder) {
  const TargetResult result = run_mode("leave-file");
  const auto left = result.trace.of("leftover");
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0]->str("what"), "file");
  EXPECT_EQ(left[0]->str("path"), "tmp/left-behind.bin");
}

// What says that a worker is our own engine saves it the events folder, not the other looks.
TEST(Leftover, AFileOfOurOwnEngine) {
  const TempDir dir;
  TargetSpec spec = spec_of({liar("leave-file")}, dir.path());
  spec.workers.front().ours = true;
  const TargetResult result = run_clean(spec);
  const auto left = result.trace.of("leftover");
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0]->str("path"), "tmp/left-behind.bin");
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "events"));
}

TEST(Honest, AnEventsFolderOfWhoeverStartedUsIsNotTheWorkers) {
  const TempDir dir;
  ::setenv("WARMGATE_EVENTS_DIR", dir.path().c_str(), 1);
  for (const bool ours : {false, true}) {
    const TempDir run;
    TargetSpec spec = spec_of({{}}, run.path());
    spec.workers.front().argv = {"/bin/sh", "-c", "echo [$WARMGATE_EVENTS_DIR]"};
    spec.workers.front().ours = ours;
    const TargetResult result = run_clean(spec);
    const std::string own = ours ? "" : (run.path() / "events").string();
    EXPECT_EQ(result.outputs.at(0).head, "[" + own + "]\n");
  }
  ::unsetenv("WARMGATE_EVENTS_DIR");
}

TEST(Output, AGigabytePassesInBoundedMemory) {
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  const TargetResult result = run_mode("much-output");
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_TRUE(ended_well(result));
  EXPECT_GT(result.outputs.at(0).bytes, std::uint64_t{1} << 30);
  EXPECT_THAT(result.outputs[0].matched,
              ::testing::ElementsAre("ERROR the very first line of trouble",
                                     "FATAL the very last line of trouble"));
  EXPECT_THAT(result.outputs[0].tail, ::testing::EndsWith("last line of trouble\n"));
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, kSanitized ? 200000 : 8000) << "KiB";
  EXPECT_LT(result.wall_s, 15);
  RecordProperty("seconds", std::to_string(result.wall_s));
}

TEST(Output, SecretsAreMaskedEverywhere) {
  const TempDir dir;
  const std::string secret = "hf_\"very\\secret\"value";
  TargetSpec spec = spec_of({liar("secrets")}, dir.path());
  spec.workers[0].env["FIXTURE_TOKEN"] = secret;
  spec.secrets = {secret};
  const TargetResult result = run_clean(spec);
  EXPECT_THAT(result.outputs.at(0).head, HasSubstr("using token [secret]\n"));
  EXPECT_THAT(result.outputs[1].matched, Each(Not(HasSubstr("very"))));
  EXPECT_EQ(result.trace.of("fault").at(0)->str("message"), "401 for token [secret]");
  for (const trace::Event& event : result.trace.events) {
    EXPECT_THAT(event.body.to_json().dump(), Not(HasSubstr("very")));
  }
}

TEST(Parallel, RunsDoNotMix) {
  constexpr int kThreads = 4, kRuns = 5;
  ensure_guard();
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const CancelToken cancel;
      for (int i = 0; i < kRuns; ++i) {
        const TempDir dir;
        // Each thread leaves another thing behind, so that a mix-up shows.
        const TargetResult result = run_target(spec_of({t == 0   ? liar("daemon")
                                                        : t == 1 ? liar("exit3")
                                                        : t == 2 ? liar("many-children")
                                                                 : honest()},
                                                       dir.path()),
                                               cancel);
        const bool right = result.trace.of("leftover").size() == (t == 0 ? 1u : 0u) &&
                           result.workers.at(0).exit_code == (t == 1 ? 3 : 0) &&
                           result.workers[0].exited && result.infra_error.empty() &&
                           result.trace.of("hello").size() == 1;
        if (!right)
          wrong[static_cast<std::size_t>(t)] += result.infra_error + " run " + std::to_string(i);
        if (t == 0 && i == 1) break;  // waits for its daemon to vanish: two are enough
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, Each(std::string()));
  EXPECT_TRUE(marked_processes().empty());
  EXPECT_EQ(zombies(), 0);
}

TargetResult run_python(const std::string& mode) {
  const TempDir dir;
  TargetSpec spec = spec_of(
      {worker({"python3", source("fixtures/workers/python_tree.py"), "--mode", mode})}, dir.path());
  spec.deadlines.phase_s["profile"] = 1;
  return run_clean(spec);
}

TEST(PythonTree, EndsWell) {
  const TargetResult result = run_python("well");
  EXPECT_TRUE(ended_well(result));
  EXPECT_EQ(result.trace.of("hello").size(), 4u) << "front end by the pipe, the others by files";
  EXPECT_EQ(result.trace.of("bye").size(), 4u);
  EXPECT_TRUE(result.trace.bad_lines.empty());
  EXPECT_TRUE(result.trace.of("leftover").empty());
}

TEST(PythonTree, CrashInTheCore) {
  const TargetResult result = run_python("crash-core");
  EXPECT_EQ(result.workers.at(0).exit_code, 1);
  EXPECT_EQ(result.trace.of("fault").at(0)->str("type"), "RuntimeError");
  EXPECT_THAT(result.outputs.at(1).matched, ::testing::Contains(HasSubstr("Traceback")));
}

TEST(PythonTree, CrashInAWorker) {
  const TargetResult result = run_python("crash-worker");
  EXPECT_EQ(result.workers.at(0).exit_code, 1);
  EXPECT_THAT(result.trace.of("fault").at(0)->str("message"), HasSubstr("exit code -11"));
}

TEST(PythonTree, AHangInAWorker) {
  const TargetResult result = run_python("hang");
  EXPECT_TRUE(result.hung);
  EXPECT_EQ(result.hang_phase, "profile");
  EXPECT_EQ(result.trace.of("deadline").at(0)->rank, 1);
}

TEST(PythonTree, AFrontEndThatDiesLeavesNobodyRunning) {
  const TargetResult result = run_python("orphan");
  EXPECT_EQ(result.workers.at(0).exit_code, 5);
}

}  // namespace
}  // namespace warmgate::target::testing
