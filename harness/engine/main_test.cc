// The worker program from outside: exit codes, events, signals, parents that die.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "harness/engine/phases/random_config.h"
#include "harness/engine/worker_process.h"

namespace warmgate::engine {
namespace {

using nlohmann::json;
using test::arguments;
using test::collectives_memory;
using test::ConfigFile;
using test::Worker;

scenario::Resolved two_ranks() {
  scenario::Resolved config = test::small_config();
  config.parallel.tp = 2;
  config.collective_deadline_ms = 60'000;
  return config;
}

TEST(WorkerProgram, RunsFromHelloToBye) {
  const ConfigFile config(test::small_config());
  Worker worker(arguments(config));
  worker.finish();
  EXPECT_EQ(worker.code, 0);
  const auto events = worker.events();
  ASSERT_GT(events.size(), 20u);
  EXPECT_EQ(events.front().at("ev"), "hello");
  EXPECT_EQ(events.front().at("pid"), worker.pid);
  EXPECT_EQ(events.front().at("rank"), 0);
  EXPECT_EQ(events.front().at("world"), 1);
  EXPECT_EQ(events.back().at("ev"), "bye");
}

TEST(WorkerProgram, HelpAndVersion) {
  for (const char* argument : {"--help", "--version"}) {
    Worker worker({argument});
    worker.finish();
    EXPECT_EQ(worker.code, 0);
    EXPECT_TRUE(worker.events().empty());
  }
}

TEST(WorkerProgram, WhatCannotBeSetUpIsNoCrash) {
  const ConfigFile garbage(std::string("{\"schema\": \"resolved/1.0\", ")),
      wrong(std::string("{}")), partly(std::string(R"({"schema": "resolved/1.0", "model": 3})")),
      fine(test::small_config());
  const std::vector<std::vector<std::string>> attempts = {{"--nonsense"},
                                                          {"--config", "/nowhere/at/all.json"},
                                                          {"--config", "/"},
                                                          arguments(garbage),
                                                          arguments(wrong),
                                                          arguments(partly),
                                                          arguments(fine, 0, 2, 1000),
                                                          arguments(fine, 0, 2)};
  for (const auto& attempt : attempts) {
    Worker worker(attempt);
    worker.finish();
    EXPECT_EQ(worker.code, 2) << attempt[0] << " " << attempt.back();
    ASSERT_EQ(worker.of("setup_error").size(), 1u);
    EXPECT_FALSE(worker.of("setup_error")[0].at("message").get<std::string>().empty());
    EXPECT_EQ(worker.of("hello").size(), 1u);
    EXPECT_TRUE(worker.of("phase_begin").empty());
  }
}

TEST(WorkerProgram, AFaultEndsWithCodeOne) {
  scenario::Resolved config = test::small_config();
  config.limits.kv_pool_bytes = 1'000'000;
  const ConfigFile file(config);
  Worker worker(arguments(file));
  worker.finish();
  EXPECT_EQ(worker.code, 1);
  EXPECT_EQ(worker.of("fault").size(), 1u);
  EXPECT_TRUE(worker.of("bye").empty());
}

class FatalSignals : public ::testing::TestWithParam<int> {};

TEST_P(FatalSignals, AreToldAndThenStrike) {
  // The other rank never comes, so this one waits in its first phase.
  const ConfigFile config(two_ranks());
  const int memory = collectives_memory(2);
  Worker worker(arguments(config, 0, 2, memory), {memory});
  ASSERT_TRUE(worker.wait_for("phase_begin"));
  ::kill(worker.pid, GetParam());
  worker.finish();
  ::close(memory);
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(worker.signal, GetParam());
#endif
  const auto faults = worker.of("fault");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].at("type"), "SIG" + std::string(::sigabbrev_np(GetParam())));
  EXPECT_EQ(faults[0].at("phase"), "bootstrap");
  EXPECT_EQ(faults[0].at("rank"), 0);
  EXPECT_GT(faults[0].at("t").get<std::int64_t>(), 0);
}
INSTANTIATE_TEST_SUITE_P(All, FatalSignals,
                         ::testing::Values(SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL));

TEST(WorkerProgram, AKilledRankEndsTheOther) {
  // So many steps that the ranks are in the midst of serving when one is shot.
  scenario::Resolved config = two_ranks();
  config.limits.max_num_seqs = 1;
  config.workload.groups = {{1000, 8, 2000, 0, "greedy"}};
  const ConfigFile file(config);
  const int memory = collectives_memory(2);
  Worker first(arguments(file, 0, 2, memory), {memory});
  Worker second(arguments(file, 1, 2, memory), {memory});
  ASSERT_TRUE(second.wait_for("ready"));
  ::kill(second.pid, SIGKILL);
  const std::int64_t killed = trace::now_ns();
  first.finish();
  EXPECT_LT(trace::now_ns() - killed, 5'000'000'000);
  ::close(memory);
  EXPECT_EQ(first.code, 1);
  const auto faults = first.of("fault");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].at("type"), "CollectiveError");
  EXPECT_EQ(faults[0].at("kind"), "peer_failed");
  EXPECT_EQ(faults[0].at("peer"), 1);
}

TEST(WorkerProgram, DiesWithItsParent) {
  const ConfigFile config(two_ranks());
  const int memory = collectives_memory(2);
  int pids[2];
  ASSERT_EQ(::pipe2(pids, O_CLOEXEC), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    auto* worker = new Worker(arguments(config, 0, 2, memory), {memory});
    const bool begun = worker->wait_for("phase_begin");
    const pid_t pid = begun ? worker->pid : -1;
    [[maybe_unused]] const ssize_t n = ::write(pids[1], &pid, sizeof pid);
    ::_exit(0);
  }
  ::waitpid(parent, nullptr, 0);
  pid_t worker = -1;
  ASSERT_EQ(::read(pids[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
  ASSERT_GT(worker, 0);
  ::close(pids[0]);
  ::close(pids[1]);
  ::close(memory);
  bool gone = false;
  for (int i = 0; i < 500 && !gone; ++i) {
    std::ifstream stat("/proc/" + std::to_string(worker) + "/stat");
    std::string pid, name, state;
    gone = !(stat >> pid >> name >> state) || state == "Z" || state == "X";
    ::usleep(10'000);
  }
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace warmgate::engine
