// The worker program from outside: exit codes, events, signals, parents that die.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/engine/parallel/collectives.h"
#include "harness/engine/phases/random_config.h"
#include "harness/trace/wire.h"

namespace warmgate::engine {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string program() {
  const char* bin = std::getenv("WARMGATE_BIN_DIR");
  return std::string(bin != nullptr ? bin : "build/bin") + "/warmgate-engine";
}

class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) {
    char name[] = "/tmp/warmgate-engine-test-XXXXXX";
    const int fd = ::mkstemp(name);
    path = name;
    EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(fd);
  }
  explicit ConfigFile(const scenario::Resolved& config) : ConfigFile(to_json(config).dump()) {}
  ~ConfigFile() { ::unlink(path.c_str()); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  std::string path;
};

/// A worker with its events on a pipe.
class Worker {
 public:
  explicit Worker(std::vector<std::string> arguments, const std::vector<int>& inherited = {}) {
    arguments.insert(arguments.begin(), program());
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    events_ = ends[0];
    // Room for a whole run, so that no worker waits for this test to read.
    ::fcntl(events_, F_SETPIPE_SZ, 1 << 20);
    struct stat st {};
    ::fstat(ends[1], &st);
    pid = ::fork();
    if (pid == 0) {
      ::fcntl(ends[1], F_SETFD, 0);
      for (const int fd : inherited) ::fcntl(fd, F_SETFD, 0);
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, 1);
      ::dup2(null, 2);
      ::setenv("WARMGATE_EVENTS_FD",
               (std::to_string(ends[1]) + ":" + std::to_string(st.st_ino)).c_str(), 1);
      std::vector<char*> argv;
      for (std::string& a : arguments) argv.push_back(a.data());
      argv.push_back(nullptr);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
  }
  ~Worker() {
    if (!reaped_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    ::close(events_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Reads until the worker has sent `ev`, at most ten seconds.
  bool wait_for(const std::string& ev) {
    const std::int64_t deadline = trace::now_ns() + 10'000'000'000;
    while (trace::now_ns() < deadline) {
      for (const json& event : events()) {
        if (event.at("ev") == ev) return true;
      }
      pollfd wanted{events_, POLLIN, 0};
      if (::poll(&wanted, 1, 100) > 0 && !read_some()) return false;
    }
    return false;
  }
  /// Reads all it says and waits for its end.
  void finish() {
    while (read_some()) {
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    reaped_ = true;
    code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  std::vector<json> events() const {
    std::vector<json> out;
    for (std::size_t begin = 0, end = 0; (end = text_.find('\n', begin)) != std::string::npos;
         begin = end + 1)
      out.push_back(json::parse(text_.substr(begin, end - begin)));
    return out;
  }
  std::vector<json> of(const std::string& ev) const {
    std::vector<json> out;
    for (json& event : events()) {
      if (event.at("ev") == ev) out.push_back(std::move(event));
    }
    return out;
  }
  pid_t pid = -1;
  int code = -1, signal = 0;

 private:
  bool read_some() {
    char buffer[1 << 16];
    const ssize_t n = ::read(events_, buffer, sizeof buffer);
    if (n > 0) text_.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }
  int events_ = -1;
  bool reaped_ = false;
  std::string text_;
};

std::vector<std::string> arguments(const ConfigFile& config, int rank = 0, int world = 1,
                                   int memory = -1) {
  std::vector<std::string> out = {"--config",       config.path,
                                  "--rank",         std::to_string(rank),
                                  "--world",        std::to_string(world),
                                  "--kernel-cache", "none",
                                  "--jit",          "host"};
  if (memory >= 0) out.insert(out.end(), {"--collectives-fd", std::to_string(memory)});
  return out;
}

int collectives_memory(int world) {
  const int memory = ::memfd_create("collectives", MFD_CLOEXEC);
  EXPECT_EQ(::ftruncate(memory, collectives_bytes(world)), 0);
  return memory;
}

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

TEST(WorkerProgram, WhatThisMachineCannotHoldIsNotEvenTried) {
  scenario::Resolved config = test::small_config();
  config.device = "cpu";
  config.model.vocab_size = 1 << 30;  // two tables of a terabyte
  config.limits.device_memory_bytes = std::int64_t{8} << 40;
  const ConfigFile file(config);
  Worker worker(arguments(file));
  worker.finish();
  EXPECT_EQ(worker.code, 2);
  ASSERT_EQ(worker.of("setup_error").size(), 1u);
  const json error = worker.of("setup_error")[0];
  EXPECT_GT(error.at("needed_bytes"), std::int64_t{2} << 40);
  EXPECT_LT(error.at("available_bytes"), error.at("needed_bytes"));
  EXPECT_NE(error.at("message").get<std::string>().find("of this machine's memory"),
            std::string::npos);
  EXPECT_TRUE(worker.of("phase_begin").empty());
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

class FatalSignals : public testing::TestWithParam<int> {};

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
                         testing::Values(SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL));

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
