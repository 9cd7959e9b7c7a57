// Runs programs for tests as a shell would see them: exit status, stdout and stderr apart.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace warmgate::cli {

namespace fs = std::filesystem;

struct Ran {
  int code = -1;   // exit code, or -1
  int signal = 0;  // that ended it, or 0
  std::string out, err;
};

inline fs::path test_path(const char* variable) {
  const char* value = std::getenv(variable);
  return fs::path(value ? value : ".");
}
inline fs::path source_path(const std::string& name) {
  return test_path("WARMGATE_SOURCE_DIR") / name;
}
inline fs::path program_path() { return test_path("WARMGATE_BIN_DIR") / "warmgate"; }

/// A child that is still running; its output is collected by finish().
class Running {
 public:
  Running(const std::vector<std::string>& argv,
          const std::vector<std::pair<std::string, std::string>>& env = {},
          const fs::path& folder = {}) {
    int out[2], err[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(::open("/dev/null", O_RDONLY), 0);
      ::dup2(out[1], 1);
      ::dup2(err[1], 2);
      if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(126);
      for (const char* name : {"NO_COLOR", "LC_ALL", "LC_CTYPE", "COLUMNS", "GITHUB_ACTIONS",
                               "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"})
        ::unsetenv(name);
      ::setenv("LANG", "C.UTF-8", 1);
      for (const auto& [name, value] : env) ::setenv(name.c_str(), value.c_str(), 1);
      std::vector<char*> words;
      for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
      words.push_back(nullptr);
      ::execvp(words[0], words.data());
      ::_exit(127);
    }
    ::close(out[1]);
    ::close(err[1]);
    out_ = out[0];
    err_ = err[0];
  }

  pid_t pid() const { return pid_; }

  Ran finish() {
    Ran ran;
    pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
      if (::poll(fds, 2, 60000) <= 0) {
        ADD_FAILURE() << "no output for a minute";
        ::kill(pid_, SIGKILL);
        break;
      }
      for (pollfd& fd : fds) {
        if (fd.fd < 0 || fd.revents == 0) continue;
        char buffer[65536];
        const ssize_t got = ::read(fd.fd, buffer, sizeof buffer);
        if (got > 0)
          (fd.fd == out_ ? ran.out : ran.err).append(buffer, static_cast<std::size_t>(got));
        else
          fd.fd = -1;
      }
    }
    ::close(out_);
    ::close(err_);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    if (WIFEXITED(status)) ran.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ran.signal = WTERMSIG(status);
    return ran;
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
};

inline Ran warmgate(std::vector<std::string> arguments,
                    const std::vector<std::pair<std::string, std::string>>& env = {},
                    const fs::path& folder = {}) {
  arguments.insert(arguments.begin(), program_path().string());
  return Running(arguments, env, folder).finish();
}

inline Ran shell(const std::string& script, const fs::path& folder = {}) {
  return Running({"/bin/sh", "-c", script}, {}, folder).finish();
}

/// A folder that is gone when the test ends.
class TempDir {
 public:
  TempDir() {
    std::string name = (fs::temp_directory_path() / "warmgate-cli-XXXXXX").string();
    if (!::mkdtemp(name.data())) std::abort();
    path_ = name;
  }
  ~TempDir() {
    std::error_code ec;
    fs::remove_all(path_, ec);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const fs::path& path() const { return path_; }
  fs::path write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }

 private:
  fs::path path_;
};

inline std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A small scenario on our own engine, of which variant bad fails.
inline std::string small_scenario() {
  return "scenario: small\n"
         "about: A small model with a drafter that owns no top-k buffer.\n"
         "tags: [tiny]\n"
         "model: {preset: small-dspark}\n"
         "limits: {max_model_len: 4096, device_memory_bytes: 80 GiB}\n"
         "drafter: {method: dspark, num_speculative_tokens: 7, topk_indices_buffer: absent}\n"
         "workload: {requests: 1, prompt_tokens: 16, output_tokens: 2}\n"
         "variants:\n"
         "  bad: {behaviour: vllm-pr50298}\n"
         "  good: {behaviour: vllm-pr50693}\n"
         "expect:\n"
         "  bad: {outcome: crashed, phase: profile, contract: owned-resources}\n"
         "  good: {outcome: passed}\n";
}

/// A scenario whose program is one of fixtures/workers.
inline std::string worker_scenario(const std::string& name, const std::string& arguments,
                                   const std::string& more = "") {
  std::string argv = (test_path("WARMGATE_BIN_DIR") / "workers" / name).string();
  return "scenario: worker\nabout: A worker for tests.\ntarget:\n  command:\n    argv: [" + argv +
         (arguments.empty() ? "" : ", " + arguments) + "]\n" + more;
}

}  // namespace warmgate::cli
