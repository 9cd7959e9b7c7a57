#include "harness/run/artefact/build_step.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "harness/run/artefact/files.h"
#include "harness/run/reproduce.h"
#include "harness/run/run_dir.h"
#include "harness/target/launch.h"

namespace warmgate::run {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostOutput = 1 << 20, kLogTail = 16 << 10;
constexpr std::size_t kMostLines = 6, kMostShown = 900;

std::string tail_of(const fs::path& path) {
  std::error_code failed;
  const auto size = fs::file_size(path, failed);
  if (failed) return "";
  std::string all = read_bounded(path, static_cast<std::size_t>(size));
  return all.size() > kLogTail ? all.substr(all.size() - kLogTail) : all;
}

std::string step_name(const BuildStep& step) {
  std::string out = step.shown_as.empty() ? shell_line(step.argv) : step.shown_as;
  if (out.size() > 300) out = out.substr(0, 297) + "...";
  return "`" + out + "`";
}

// For writing, with a number >= 3. Throws std::system_error.
UniqueFd open_log(const fs::path& path, int more) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | more, 0600);
  if (fd >= 0 && fd < 3) {
    const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
    ::close(fd);
    fd = high;
  }
  if (fd < 0)
    throw std::system_error(errno, std::generic_category(), "cannot write " + path.string());
  return UniqueFd(fd);
}

// Ends whatever the command left in its group, and waits for itself.
int reaped(const target::Launched& launched) {
  ::kill(-launched.pid, SIGKILL);
  int status = 0;
  while (::waitpid(launched.pid, &status, 0) < 0 && errno == EINTR) {
  }
  ::kill(-launched.pid, SIGKILL);
  return status;
}

struct Ended {
  int status = 0;
  std::string cut;  // why we ended it
};

Ended wait_for(const target::Launched& launched, const BuildStep& step,
               const target::CancelToken& cancel) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(step.deadline_s);
  Ended out;
  while (out.cut.empty()) {
    pollfd fds[2] = {{launched.pidfd.get(), POLLIN, 0}, {cancel.fd(), POLLIN, 0}};
    if (::poll(fds, 2, 200) < 0 && errno != EINTR) break;
    if (fds[0].revents != 0) break;
    if (cancel.cancelled()) {
      out.cut = "interrupted";
    } else if (Clock::now() >= deadline) {
      out.cut = fmt::format("not done after {:.0f} s", step.deadline_s);
    } else if (step.watch) {
      out.cut = step.watch();
    }
  }
  out.status = reaped(launched);
  return out;
}

std::string how_ended(const Ended& end) {
  if (!end.cut.empty()) return "was ended: " + end.cut;
  if (WIFSIGNALED(end.status)) return fmt::format("died by signal {}", WTERMSIG(end.status));
  return fmt::format("ended with {}", WEXITSTATUS(end.status));
}

// `out` and `err` are descriptors of ours, >= 3.
Ended execute(const BuildStep& step, int out, int err, const target::CancelToken& cancel) {
  if (cancel.cancelled()) throw BuildError("interrupted");
  target::LaunchRequest request;
  request.argv = step.argv;
  request.env = target::inherited_environment(step.env, step.without);
  request.cwd = step.cwd.string();
  const target::Fd nothing = target::open_high("/dev/null", O_RDONLY);
  request.stdin_fd = nothing.get();
  request.stdout_fd = out;
  request.stderr_fd = err;
  return wait_for(target::launch(request), step, cancel);
}

}  // namespace

std::string last_lines(std::string_view text, std::size_t lines, std::size_t most) {
  std::vector<std::string_view> kept;
  std::size_t bytes = 0;
  for (std::size_t end = text.size(); end > 0 && kept.size() < lines;) {
    const std::size_t at = text.find_last_of("\n\r", end - 1);
    const std::size_t begin = at == std::string_view::npos ? 0 : at + 1;
    std::string_view line = text.substr(begin, end - begin);
    while (!line.empty() && line.back() == ' ') line.remove_suffix(1);
    if (!line.empty()) {
      if (bytes + line.size() > most) {
        if (kept.empty()) kept.push_back(line.substr(0, most));
        break;
      }
      kept.push_back(line);
      bytes += line.size();
    }
    if (at == std::string_view::npos) break;
    end = at;
  }
  std::reverse(kept.begin(), kept.end());
  return fmt::format("{}", fmt::join(kept, " | "));
}

void run_step(const BuildStep& step, const target::CancelToken& cancel) {
  try {
    const UniqueFd log = open_log(step.log, O_APPEND);
    const std::string title = "$ " + step_name(step) + "\n";
    if (::write(log.get(), title.data(), title.size()) < 0) { /* the log is for people only */
    }
    const Ended end = execute(step, log.get(), log.get(), cancel);
    if (end.cut.empty() && WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0) return;
    std::string said = tail_of(step.log);
    if (const std::size_t at = said.rfind(title); at != std::string::npos)
      said.erase(0, at + title.size());
    said = last_lines(said, kMostLines, kMostShown);
    throw BuildError(fmt::format("{} {}{}{} (all of it in {})", step_name(step), how_ended(end),
                                 said.empty() ? "" : ": ", said, step.log.string()));
  } catch (const std::system_error& error) {
    throw BuildError(fmt::format("{}: {}", step_name(step), error.what()));
  }
}

std::string output_of(const BuildStep& step, const target::CancelToken& cancel) {
  const RunDir scratch("build");
  const fs::path out = scratch.path() / "stdout", err = scratch.path() / "stderr";
  try {
    Ended end;
    {
      const UniqueFd to_out = open_log(out, O_TRUNC);
      const UniqueFd to_err = open_log(err, O_TRUNC);
      end = execute(step, to_out.get(), to_err.get(), cancel);
    }
    if (end.cut.empty() && WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0)
      return read_bounded(out, kMostOutput);
    const std::string said = last_lines(tail_of(err), kMostLines, kMostShown);
    throw BuildError(
        fmt::format("{} {}{}{}", step_name(step), how_ended(end), said.empty() ? "" : ": ", said));
  } catch (const std::system_error& error) {
    throw BuildError(fmt::format("{}: {}", step_name(step), error.what()));
  }
}

}  // namespace warmgate::run
