// What tests of this folder share: a private folder, specs of the worker fixtures, a look at /proc.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/target/guard.h"
#include "harness/target/sweep.h"
#include "harness/target/target.h"

namespace warmgate::target::testing {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

class TempDir {
 public:
  TempDir() {
    std::string pattern = "/tmp/warmgate-target-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline fs::path bin(const std::string& name) {
  const char* dir = std::getenv("WARMGATE_BIN_DIR");
  return fs::path(dir != nullptr ? dir : "build-dev/bin") / name;
}

inline fs::path source(const std::string& name) {
  const char* dir = std::getenv("WARMGATE_SOURCE_DIR");
  return fs::path(dir != nullptr ? dir : ".") / name;
}

inline WorkerSpec worker(std::vector<std::string> argv, int rank = 0) {
  WorkerSpec spec;
  spec.argv = std::move(argv);
  spec.rank = rank;
  return spec;
}

inline WorkerSpec honest(int rank = 0, int world = 1) {
  return worker({bin("workers/worker_honest"), "--rank", std::to_string(rank), "--world",
                 std::to_string(world)},
                rank);
}

inline WorkerSpec liar(const std::string& mode, int rank = 0, int world = 1,
                       const std::string& in = "serve") {
  return worker({bin("workers/worker_liar"), "--mode", mode, "--rank", std::to_string(rank),
                 "--world", std::to_string(world), "--in", in},
                rank);
}

/// Deadlines short enough for tests, long enough for a slow machine.
inline TargetSpec spec_of(std::vector<WorkerSpec> workers, const fs::path& run_dir) {
  TargetSpec spec;
  spec.name = "test";
  spec.workers = std::move(workers);
  spec.phases = {"bootstrap", "load",  "profile", "kv",      "warmup",
                 "capture",   "ready", "serve",   "shutdown"};
  spec.run_dir = run_dir;
  spec.deadlines.shutdown_grace_s = 0.3;
  spec.deadlines.settle_s = 0.6;
  return spec;
}

/// Living processes that carry a marker of this process's runs.
inline std::vector<std::string> marked_processes() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const int fd = ::open((entry.path() / "environ").c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    std::string text(1 << 17, '\0');
    const ssize_t n = ::read(fd, text.data(), text.size());
    ::close(fd);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    if (text.find("WARMGATE_RUN=" + run_prefix()) == std::string::npos) continue;
    ProcessInfo info;
    if (read_process(std::stoi(name), info, true)) out.push_back(name + " " + info.command);
  }
  return out;
}

/// Our children that are dead and not waited for.
inline int zombies() {
  int count = 0;
  for (const pid_t pid : children_of(::getpid())) {
    ProcessInfo info;
    if (read_process(pid, info) && info.state == 'Z') ++count;
  }
  return count;
}

/// All but the inotify ones, which are kept for the next run on purpose.
inline int open_descriptors() {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (fs::read_symlink(entry.path(), ignored) != "anon_inode:inotify") ++count;
  }
  return count;
}

/// Runs it and holds it against what is true of every run: nothing alive, no zombie, no descriptor.
inline TargetResult run_clean(const TargetSpec& spec) {
  ensure_guard();
  const CancelToken cancel;
  const int before = open_descriptors();
  TargetResult result = run_target(spec, cancel);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(zombies(), 0);
  EXPECT_TRUE(marked_processes().empty()) << marked_processes().front();
  EXPECT_EQ(result.infra_error, "");
  EXPECT_EQ(result.workers.size(), spec.workers.size());
  EXPECT_EQ(result.trace.of("process_end").size(), spec.workers.size());
  EXPECT_EQ(result.outputs.size(), 2 * spec.workers.size());
  return result;
}

inline TargetResult run_mode(const std::string& mode) {
  const TempDir dir;
  return run_clean(spec_of({liar(mode)}, dir.path()));
}

}  // namespace warmgate::target::testing
