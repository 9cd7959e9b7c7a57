// For tests: the worker program in a process of its own, with its events on a pipe.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/engine/parallel/collectives.h"
#include "harness/scenario/resolved.h"
#include "harness/trace/wire.h"

namespace warmgate::engine::test {

inline std::string program() {
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
      for (const nlohmann::json& event : events()) {
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
  std::vector<nlohmann::json> events() const {
    std::vector<nlohmann::json> out;
    for (std::size_t begin = 0, end = 0; (end = text_.find('\n', begin)) != std::string::npos;
         begin = end + 1)
      out.push_back(nlohmann::json::parse(text_.substr(begin, end - begin)));
    return out;
  }
  std::vector<nlohmann::json> of(const std::string& ev) const {
    std::vector<nlohmann::json> out;
    for (nlohmann::json& event : events()) {
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

inline std::vector<std::string> arguments(const ConfigFile& config, int rank = 0, int world = 1,
                                          int memory = -1) {
  std::vector<std::string> out = {"--config",       config.path,
                                  "--rank",         std::to_string(rank),
                                  "--world",        std::to_string(world),
                                  "--kernel-cache", "none",
                                  "--jit",          "host"};
  if (memory >= 0) out.insert(out.end(), {"--collectives-fd", std::to_string(memory)});
  return out;
}

inline int collectives_memory(int world) {
  const int memory = ::memfd_create("collectives", MFD_CLOEXEC);
  EXPECT_EQ(::ftruncate(memory, collectives_bytes(world)), 0);
  return memory;
}

}  // namespace warmgate::engine::test
