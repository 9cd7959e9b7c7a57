// Workers that do not end: deadline and silence, SIGTERM and SIGKILL, a cancel, our own death.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "harness/target/test_support.h"

namespace warmgate::target::testing {
namespace {

TargetResult run_hanging(const std::string& mode, double deadline_s, double silence_s,
                         double scale = 1) {
  const TempDir dir;
  TargetSpec spec = spec_of({liar(mode)}, dir.path());
  spec.deadlines.phase_s["serve"] = deadline_s;
  spec.deadlines.silence_s = silence_s;
  spec.deadlines.scale = scale;
  return run_clean(spec);
}

TEST(Hang, ADeadlineDespiteHeartbeats) {
  const TargetResult result = run_hanging("hang-heartbeat", 0.4, 0.3);
  EXPECT_TRUE(result.hung);
  EXPECT_EQ(result.hang_kind, "deadline");
  EXPECT_EQ(result.hang_phase, "serve");
  EXPECT_TRUE(result.workers[0].killed_by_us);
  EXPECT_EQ(result.workers[0].signal, SIGTERM);
  EXPECT_EQ(result.first_failed_rank, -1);
  const auto deadlines = result.trace.of("deadline");
  ASSERT_EQ(deadlines.size(), 1u);
  EXPECT_EQ(deadlines[0]->str("phase"), "serve");
  EXPECT_EQ(deadlines[0]->rank, 0);
  EXPECT_DOUBLE_EQ(deadlines[0]->real("after_s"), 0.4);
  EXPECT_GE(result.wall_s, 0.4);
  EXPECT_LT(result.wall_s, 3);
}

TEST(Hang, Silence) {
  const TargetResult result = run_hanging("hang-silent", 30, 0.3);
  EXPECT_TRUE(result.hung);
  EXPECT_EQ(result.hang_kind, "silence");
  EXPECT_EQ(result.hang_phase, "serve");
  EXPECT_LT(result.wall_s, 3);
}

TEST(Hang, TheScaleStretchesBoth) {
  const TargetResult result = run_hanging("hang-silent", 0.2, 30, 3);
  EXPECT_EQ(result.hang_kind, "deadline");
  EXPECT_GE(result.wall_s, 0.6);
}

TEST(Hang, IgnoredSigtermNeedsSigkill) {
  const TargetResult result = run_hanging("ignore-sigterm", 0.3, 30);
  EXPECT_TRUE(result.hung);
  EXPECT_TRUE(result.workers[0].killed_by_us);
  EXPECT_TRUE(result.workers[0].needed_sigkill);
  EXPECT_EQ(result.workers[0].signal, SIGKILL);
  EXPECT_TRUE(result.trace.of("process_end").at(0)->flag("needed_sigkill"));
}

TEST(Hang, AWorkerThatChangesItsGroupIsReached) {
  const TargetResult result = run_hanging("own-group", 0.3, 30);
  EXPECT_TRUE(result.hung);
  EXPECT_EQ(result.workers[0].signal, SIGTERM);
  // It was our kill: what it leaves is removed (run_clean looks) and not held against it.
  EXPECT_TRUE(result.trace.of("leftover").empty());
}

TEST(Hang, RoundInCircles) {
  const TempDir dir;
  TargetSpec spec = spec_of({liar("circles")}, dir.path());
  spec.deadlines.total_s = 0.4;
  const TargetResult result = run_clean(spec);
  EXPECT_TRUE(result.hung);
  EXPECT_EQ(result.hang_kind, "deadline");
}

TEST(Cancel, EndsEverythingAndKeepsWhatWasSeen) {
  const TempDir dir;
  const TargetSpec spec =
      spec_of({liar("hang-heartbeat", 0, 2), liar("ignore-sigterm", 1, 2)}, dir.path());
  CancelToken cancel;
  std::atomic<int> serving{0};
  const TargetResult result = run_target(spec, cancel, [&](int, std::string_view phase) {
    if (phase == "serve" && ++serving == 2) cancel.cancel();
  });
  EXPECT_TRUE(result.interrupted);
  EXPECT_FALSE(result.hung);
  EXPECT_EQ(result.trace.of("hello").size(), 2u);
  EXPECT_EQ(result.trace.of("process_end").size(), 2u);
  EXPECT_TRUE(result.workers.at(1).needed_sigkill);
  EXPECT_LT(result.wall_s, 3);
  EXPECT_TRUE(marked_processes().empty());
  EXPECT_EQ(zombies(), 0);
}

TEST(Cancel, BeforeTheStart) {
  const TempDir dir;
  CancelToken cancel;
  cancel.cancel();
  const TargetResult result = run_target(spec_of({liar("hang-silent")}, dir.path()), cancel);
  EXPECT_TRUE(result.interrupted);
  EXPECT_LT(result.wall_s, 2);
  EXPECT_TRUE(marked_processes().empty());
}

TEST(Cancel, FromASignalHandler) {
  static CancelToken* token = nullptr;
  CancelToken cancel;
  token = &cancel;
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { token->cancel(); };
  ::sigaction(SIGUSR1, &action, &before);
  const TempDir dir;
  const TargetResult result = run_target(spec_of({liar("hang-silent")}, dir.path()), cancel,
                                         [](int, std::string_view phase) {
                                           if (phase == "serve") ::raise(SIGUSR1);
                                         });
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(result.interrupted);
}

// A warmgate that is killed takes its workers and their children with it.
TEST(Death, WorkersAndTheirChildrenDieWithUs) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);  // we get to wait for what is orphaned
  const TempDir dir;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t harness = ::fork();
  ASSERT_GE(harness, 0);
  if (harness == 0) {
    ::dup2(ready[1], 9);
    ::setenv("WARMGATE_TEST_DIR", dir.path().c_str(), 1);
    ::execl("/proc/self/exe", "victim", nullptr);
    ::_exit(1);
  }
  ::close(ready[1]);
  char text[100] = "";
  ASSERT_GT(::read(ready[0], text, sizeof text - 1), 0);
  ::close(ready[0]);
  const std::string marker = std::string("WARMGATE_RUN=") + text;
  const auto alive = [&] {
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const int pid = std::atoi(entry.path().filename().c_str());
      if (pid > 0 && has_environment(pid, marker)) ++count;
    }
    return count;
  };
  EXPECT_GE(alive(), 2);
  ::kill(harness, SIGKILL);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (alive() > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(alive(), 0);
  // The killed harness, its guard, its workers: all fall to us and are waited for here.
  while (::waitpid(harness, nullptr, WNOHANG) == 0) {
  }
  for (const pid_t pid : children_of(::getpid())) {
    if (pid != guard_pid()) ::waitpid(pid, nullptr, 0);
  }
}

// The harness that is killed: this program once more, which never gets as far as its tests.
const bool victim = [] {
  const char* dir = std::getenv("WARMGATE_TEST_DIR");
  if (dir == nullptr) return false;
  const CancelToken cancel;
  const std::string first = run_prefix() + "1";
  bool told = false;
  run_target(spec_of({liar("own-group")}, dir), cancel, [&](int, std::string_view phase) {
    if (phase != "serve" || std::exchange(told, true)) return;
    if (::write(9, first.data(), first.size()) < 0) std::abort();
    ::close(9);
  });
  std::_Exit(1);
}();

}  // namespace
}  // namespace warmgate::target::testing
