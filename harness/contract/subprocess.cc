#include "harness/contract/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

extern char** environ;

namespace warmgate::contract {
namespace {

using Clock = std::chrono::steady_clock;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

bool make_pipe(Fd& read_end, Fd& write_end) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return false;
  read_end = Fd(fds[0]);
  write_end = Fd(fds[1]);
  return true;
}

void unblock(const Fd& fd) { ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK); }

// A program that closes its stdin early must not end us. The signal is blocked for this thread and
// one that arrived because of us is taken away again before the old mask returns.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &old_);
  }
  ~NoSigpipe() {
    const timespec now{0, 0};
    if (!was_pending_)
      while (sigtimedwait(&pipe_, nullptr, &now) == -1 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_{}, old_{};
  bool was_pending_ = false;
};

// 0 or an errno. The child: own group, no signal blocked or ignored, descriptors 0, 1, 2 only.
int spawn(const std::vector<std::string>& argv, const Fd& in, const Fd& out, const Fd& err,
          pid_t& pid) {
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, out.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.get(), 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawnp(&pid, args[0], &actions, &attributes, args.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Reads what is there; closes at the end of the stream. Bytes past `limit` are counted as too much
// where that matters, else dropped.
bool drain(Fd& fd, std::string& into, std::size_t limit) {
  std::array<char, 65536> buffer;
  while (fd.open()) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n > 0) {
      const std::size_t room = limit > into.size() ? limit - into.size() : 0;
      into.append(buffer.data(), std::min<std::size_t>(room, static_cast<std::size_t>(n)));
      if (static_cast<std::size_t>(n) > room) return false;
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    fd.reset();
  }
  return true;
}

class Feeder {
 public:
  explicit Feeder(const std::function<std::string()>& feed) : feed_(feed) {}
  void write_to(Fd& fd) {
    while (fd.open()) {
      if (sent_ == piece_.size()) {
        piece_ = feed_();
        sent_ = 0;
        if (piece_.empty()) return fd.reset();
      }
      const ssize_t n = ::write(fd.get(), piece_.data() + sent_, piece_.size() - sent_);
      if (n >= 0) {
        sent_ += static_cast<std::size_t>(n);
      } else if (errno == EAGAIN) {
        return;
      } else if (errno != EINTR) {
        return fd.reset();  // it does not want the rest; whether that is a fault it says itself
      }
    }
  }

 private:
  const std::function<std::string()>& feed_;
  std::string piece_;
  std::size_t sent_ = 0;
};

void end_group(pid_t pid, Finished& result) {
  // The leader is still a zombie here, so its group's number cannot have been given away.
  ::kill(-pid, SIGKILL);
  int status = 0;
  pid_t waited;
  while ((waited = ::waitpid(pid, &status, 0)) == -1 && errno == EINTR) {
  }
  if (waited != pid) {
    result.problem = std::string("waitpid: ") + std::strerror(errno);
  } else if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
  } else {
    result.exit_code = WEXITSTATUS(status);
  }
}

}  // namespace

Finished run_helper(const std::vector<std::string>& argv, const std::function<std::string()>& feed,
                    std::chrono::milliseconds deadline, std::size_t max_out) {
  Finished result;
  if (argv.empty() || argv[0].empty()) {
    result.problem = "no program named";
    return result;
  }
  const NoSigpipe guard;
  Fd in_read, in_write, out_read, out_write, err_read, err_write;
  if (!make_pipe(in_read, in_write) || !make_pipe(out_read, out_write) ||
      !make_pipe(err_read, err_write)) {
    result.problem = std::string("pipe: ") + std::strerror(errno);
    return result;
  }
  pid_t pid = -1;
  if (const int error = spawn(argv, in_read, out_write, err_write, pid); error != 0) {
    result.problem = argv[0] + ": " + std::strerror(error);
    return result;
  }
  result.started = true;
  in_read.reset();
  out_write.reset();
  err_write.reset();
  for (const Fd* fd : {&in_write, &out_read, &err_read}) unblock(*fd);
  Feeder feeder(feed);
  const Clock::time_point until = Clock::now() + deadline;
  while (true) {
    feeder.write_to(in_write);
    if (!drain(out_read, result.out, max_out)) result.too_much = true;
    if (!drain(err_read, result.err, 4096)) {
      // Only its beginning is kept, but the pipe must not fill up.
    }
    siginfo_t info{};
    const bool gone =
        ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == pid;
    if (gone || result.too_much) break;
    if (Clock::now() >= until) {
      result.timed_out = true;
      break;
    }
    std::array<pollfd, 3> fds{
        {{in_write.get(), POLLOUT, 0}, {out_read.get(), POLLIN, 0}, {err_read.get(), POLLIN, 0}}};
    // Its end wakes us through the closing pipes; the 10 ms are for programs that closed them.
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    const bool quiet = !out_read.open() && !err_read.open();
    ::poll(fds.data(), fds.size(),
           static_cast<int>(std::clamp<long long>(left, 0, quiet ? 2 : 10)));
  }
  end_group(pid, result);
  if (!result.too_much && !drain(out_read, result.out, max_out)) result.too_much = true;
  (void)drain(err_read, result.err, 4096);
  return result;
}

}  // namespace warmgate::contract
