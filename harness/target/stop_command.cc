#include "harness/target/stop_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>

#include "harness/target/launch.h"
#include "harness/target/sweep.h"
#include "harness/trace/wire.h"

namespace warmgate::target {

void StopCommand::run(const StopSpec& spec, const std::vector<std::string>& env, int null_fd,
                      std::function<void()> done) {
  done_ = std::move(done);
  start_ns_ = end_ns_ = trace::now_ns();
  try {
    LaunchRequest request;
    request.argv = spec.argv;
    request.env = env;
    request.cwd = spec.cwd;
    request.stdin_fd = null_fd;
    request.stdout_fd = null_fd;
    request.stderr_fd = null_fd;
    Launched launched = launch(request);
    pid_ = launched.pid;
    register_worker(pid_);
    watch_.assign(::fcntl(launched.pidfd.get(), F_DUPFD_CLOEXEC, 3));
  } catch (const std::exception& error) {
    error_ = error.what();
    boost::asio::post(watch_.get_executor(), [this] { done_(); });
    return;
  }
  watch_.async_wait(watch_.wait_read, [this](auto error) {
    if (!error) reap();
  });
  timer_.expires_after(std::chrono::milliseconds(static_cast<std::int64_t>(spec.deadline_s * 1e3)));
  timer_.async_wait([this](auto error) {
    if (error || pid_ <= 0) return;
    timed_out_ = true;
    ::kill(-pid_, SIGKILL);  // not waited for yet: the number is its own
  });
}

void StopCommand::reap() {
  if (pid_ <= 0) return;
  end_ns_ = trace::now_ns();
  ::waitpid(pid_, &status_, 0);
  ::kill(-pid_, SIGKILL);  // what it started and did not wait for
  forget_worker(pid_);
  pid_ = -1;
  timer_.cancel();
  watch_.close();
  done_();
}

StopCommand::~StopCommand() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  forget_worker(pid_);
}

trace::Event StopCommand::event() const {
  trace::json body = {{"wall_s", static_cast<double>(end_ns_ - start_ns_) / 1e9},
                      {"timed_out", timed_out_}};
  if (!error_.empty()) {
    body["error"] = error_;
  } else if (WIFEXITED(status_)) {
    body["exit_code"] = WEXITSTATUS(status_);
  } else if (WIFSIGNALED(status_)) {
    body["signal"] = WTERMSIG(status_);
  }
  trace::Event out = trace::harness_event("stop", body);
  out.t_ns = start_ns_;
  return out;
}

}  // namespace warmgate::target
