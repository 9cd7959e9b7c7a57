// For tests: ranks as processes that share the memory of their collectives.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "harness/engine/parallel/collectives.h"

namespace warmgate::engine::test {

inline int make_memory(int world) {
  const int fd = ::memfd_create("collectives", MFD_CLOEXEC);
  EXPECT_EQ(::ftruncate(fd, collectives_bytes(world)), 0);
  return fd;
}

struct Outcome {
  int code = -1, signal = 0;
  std::string said;  // what() of a CollectiveError after its kind, else what the body returned
};
using Body = std::function<std::string(Collectives&)>;

/// Each rank in a process of its own. Exit 0: the body returned; 1: it threw a CollectiveError.
inline std::vector<Outcome> run_ranks(int world, std::int64_t deadline_ms,
                                      const std::vector<Body>& bodies) {
  const int memory = make_memory(world);
  std::vector<pid_t> pids;
  std::vector<int> pipes;
  for (int rank = 0; rank < static_cast<int>(bodies.size()); ++rank) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      std::string said;
      int code = 0;
      try {
        const auto collectives = make_shared_collectives(memory, rank, world, deadline_ms);
        try {
          said = bodies[static_cast<std::size_t>(rank)](*collectives);
        } catch (const CollectiveError& error) {
          said = error.kind + ": " + error.what();
          code = 1;
          collectives->abandon(error.what());
        }
      } catch (const std::exception& error) {
        said = error.what();
        code = 2;
      }
      [[maybe_unused]] const ssize_t n = ::write(ends[1], said.data(), said.size());
      ::_exit(code);
    }
    ::close(ends[1]);
    pids.push_back(pid);
    pipes.push_back(ends[0]);
  }
  std::vector<Outcome> out(pids.size());
  for (std::size_t i = 0; i < pids.size(); ++i) {
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(pipes[i], buffer, sizeof buffer)) > 0;)
      out[i].said.append(buffer, static_cast<std::size_t>(n));
    ::close(pipes[i]);
    int status = 0;
    ::waitpid(pids[i], &status, 0);
    out[i].code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out[i].signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  ::close(memory);
  return out;
}

inline std::vector<Body> same(int world, const Body& body) {
  return std::vector<Body>(static_cast<std::size_t>(world), body);
}

inline void sleep_ms(int ms) { ::usleep(static_cast<useconds_t>(ms) * 1000); }

}  // namespace warmgate::engine::test
