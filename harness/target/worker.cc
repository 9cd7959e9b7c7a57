#include "harness/target/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/process/v2/impl/environment.ipp>  // 1.81's header-only part, in this file only
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "harness/target/sweep.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

constexpr int kPipeBytes = 1 << 20;
// A worker writes its lines one by one. Being woken for each costs both sides more than the line
// does, and a pipe holds several thousand of them: so events are fetched by the clock, less often
// the longer nothing comes. What ends a worker is seen at once, and its pipe read to the end first.
constexpr std::chrono::milliseconds kShortestPause(2), kLongestPause(16);
// More than a full pipe; bounded, because a descendant may go on filling it.
constexpr int kDrainRounds = 64;

std::uint64_t inode_of(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? static_cast<std::uint64_t>(info.st_ino) : 0;
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

// waitid(2) itself: unlike the library's it also gives the resource usage, and with WNOWAIT it
// leaves the process for Boost.Process to wait for.
bool peek_end(pid_t pid, rusage* usage) {
  siginfo_t info{};
  return ::syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT, usage) == 0 &&
         info.si_pid == pid;
}

}  // namespace

Worker::Worker(boost::asio::io_context& io, const WorkerSpec& spec, trace::Trace& trace,
               const std::vector<std::string>& secrets, std::vector<char>& scratch, Hooks hooks)
    : io_(io),
      spec_(spec),
      trace_(trace),
      scratch_(scratch),
      hooks_(std::move(hooks)),
      source_("rank" + std::to_string(spec.rank)),
      reader_(source_, trace),
      spotter_(secrets, !spec.ours),
      stdout_(secrets),
      stderr_(secrets),
      events_(io),
      out_(io),
      err_(io),
      exit_watch_(io) {
  end_.rank = spec.rank;
  reader_.refuse_harness();
}

void Worker::start(const WorkerOrders& orders) {
  Pipe events = make_pipe(kPipeBytes), out = make_pipe(kPipeBytes), err = make_pipe(kPipeBytes);
  LaunchRequest request;
  request.argv = spec_.argv;
  request.env = orders.env;
  request.env.push_back("WARMGATE_EVENTS_FD=" + std::to_string(events.write.get()) + ":" +
                        std::to_string(inode_of(events.write.get())));
  request.cwd = spec_.cwd;
  request.stdin_fd = orders.stdin_fd;
  request.stdout_fd = out.write.get();
  request.stderr_fd = err.write.get();
  request.keep_fds = spec_.inherit_fds;
  request.keep_fds.push_back(events.write.get());
  request.address_space_bytes = orders.memory_bytes;
  rusage own{};
  ::getrusage(RUSAGE_SELF, &own);
  own_peak_kib_ = own.ru_maxrss;
  started_ns_ = trace::now_ns();
  Launched launched = launch(request);
  register_worker(launched.pid);
  running_ = true;
  end_.pid = launched.pid;
  exit_watch_.assign(::fcntl(launched.pidfd.get(), F_DUPFD_CLOEXEC, 3));
  process_.emplace(io_.get_executor(), launched.pid, launched.pidfd.get());
  launched.pidfd.release();

  events_.pipe = std::move(events.read);
  out_.stream.assign(out.read.release());
  out_.sink = [this](std::string_view bytes) {
    stdout_.feed(bytes);
    if (hooks_.output) hooks_.output(*this, "stdout", bytes);
  };
  err_.stream.assign(err.read.release());
  err_.sink = [this](std::string_view bytes) {
    stderr_.feed(bytes);
    if (hooks_.output) hooks_.output(*this, "stderr", bytes);
  };
  for (Channel* channel : {&out_, &err_}) watch(*channel);
  poll_events();
  watch_end();
}

void Worker::poll_events() {
  events_.timer.expires_after(std::max(events_.pause, kShortestPause));
  events_.timer.async_wait([this](auto stopped) {
    if (stopped || !events_.pipe.valid()) return;
    const std::size_t before = trace_.events.size();
    if (read_events(4, true) == Reading::kEnded) return;
    const bool quiet = trace_.events.size() == before;
    events_.pause = quiet ? std::min(2 * events_.pause, kLongestPause) : kShortestPause;
    poll_events();
  });
}

Worker::Reading Worker::read_events(int rounds, bool until_short) {
  const Reading state = read(
      events_.pipe.get(),
      [this](std::string_view bytes) {
        spotter_.feed(bytes);
        const std::size_t before = trace_.events.size();
        reader_.feed(bytes);
        if (trace_.events.size() > before) hooks_.events(*this);
      },
      rounds, until_short);
  if (state == Reading::kEnded) events_.pipe.reset();
  return state;
}

void Worker::watch(Channel& channel) {
  channel.stream.async_wait(channel.stream.wait_read, [this, &channel](auto error) {
    if (error || !channel.stream.is_open()) return;
    // A few at a time, so that one that never stops does not keep the others waiting.
    const Reading state = read(channel.stream.native_handle(), channel.sink, 4, true);
    if (state == Reading::kEnded) {
      channel.stream.close();
    } else {
      watch(channel);
    }
  });
}

Worker::Reading Worker::read(int fd, const std::function<void(std::string_view)>& sink, int rounds,
                             bool until_short) {
  for (int i = 0; i < rounds; ++i) {
    const ssize_t n = ::read(fd, scratch_.data(), scratch_.size());
    if (n > 0) {
      hooks_.heard();
      sink({scratch_.data(), static_cast<std::size_t>(n)});
      // Most likely that was all; saves the call that would say so.
      if (until_short && static_cast<std::size_t>(n) < scratch_.size() / 4)
        return Reading::kDrained;
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return Reading::kDrained;
    return Reading::kEnded;
  }
  return Reading::kMore;
}

void Worker::watch_end() {
  exit_watch_.async_wait(exit_watch_.wait_read, [this](auto error) {
    if (!error) reap();
  });
}

void Worker::reap() {
  rusage usage{};
  if (!peek_end(end_.pid, &usage)) return watch_end();  // a wake-up for nothing
  ended_ns_ = trace::now_ns();
  drain();  // what it said comes before its end
  exit_watch_.close();
  boost::system::error_code failed;
  process_->running(failed);  // waits for it: it has ended
  // Not exit_code(): that gives 9 for SIGKILL and for exit(9).
  const int status = process_->native_exit_code();
  // The number may belong to another child from here on, and the handle's destructor would kill it.
  process_->detach();
  process_.reset();
  forget_worker(end_.pid);
  running_ = false;
  end_.exited = WIFEXITED(status);
  end_.exit_code = end_.exited ? WEXITSTATUS(status) : 0;
  end_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end_.killed_by_us = signalled_;
  end_.wall_s = static_cast<double>(ended_ns_ - started_ns_) / 1e9;
  end_.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  // A child starts in its parent's memory, and the kernel counts that as its own (exec_mmap keeps
  // the old high-water mark). A figure above ours is the child's; below it the last sample is all
  // there is.
  peak_exact_ = usage.ru_maxrss > own_peak_kib_;
  end_.peak_rss_bytes = peak_exact_ ? usage.ru_maxrss * 1024 : sampled_peak_;
  hooks_.ended(*this);
}

bool Worker::failed() const {
  return !running_ && end_.pid > 0 && !end_.killed_by_us && (!end_.exited || end_.exit_code != 0);
}

bool Worker::signal(int number) {
  if (!running_ || peek_end(end_.pid, nullptr)) return false;
  signalled_ = true;
  if (number == SIGKILL) end_.needed_sigkill = true;
  // Not waited for yet, so neither number can mean another process.
  ::kill(-end_.pid, number);
  if (::getpgid(end_.pid) != end_.pid) ::kill(end_.pid, number);
  if (number == SIGTERM) {  // a stopped process does not see it otherwise
    ::kill(-end_.pid, SIGCONT);
    ::kill(end_.pid, SIGCONT);
  }
  return true;
}

void Worker::excuse() {
  if (running_ && !peek_end(end_.pid, nullptr)) signalled_ = true;
}

void Worker::sample_peak() {
  if (!running_) return;
  char path[40], text[4096];
  std::snprintf(path, sizeof path, "/proc/%d/status", end_.pid);
  const Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t n = fd.valid() ? ::read(fd.get(), text, sizeof text - 1) : -1;
  if (n <= 0) return;
  text[n] = '\0';
  long long kib = 0;
  const char* at = std::strstr(text, "VmHWM:");
  if (at != nullptr && std::sscanf(at, "VmHWM: %lld", &kib) == 1) {
    sampled_peak_ = std::max<std::int64_t>(sampled_peak_, kib * 1024);
  }
}

bool Worker::drain() {
  bool all = !events_.pipe.valid() || read_events(kDrainRounds, false) == Reading::kEnded;
  for (Channel* channel : {&out_, &err_}) {
    if (!channel->stream.is_open()) continue;
    const bool ended = read(channel->stream.native_handle(), channel->sink, kDrainRounds, false) ==
                       Reading::kEnded;
    if (ended) channel->stream.close();
    all = ended && all;
  }
  return all;
}

std::vector<std::uint64_t> Worker::open_pipes() const {
  std::vector<std::uint64_t> out;
  if (events_.pipe.valid()) out.push_back(inode_of(events_.pipe.get()));
  for (const Channel* channel : {&out_, &err_}) {
    if (!channel->stream.is_open()) continue;
    auto& stream = const_cast<Channel*>(channel)->stream;
    out.push_back(inode_of(stream.native_handle()));
  }
  return out;
}

void Worker::finish() {
  events_.timer.cancel();
  events_.pipe.reset();
  for (Channel* channel : {&out_, &err_}) {
    boost::system::error_code ignored;
    if (channel->stream.is_open()) channel->stream.close(ignored);
  }
  reader_.finish();
  for (auto [capture, name] : {std::pair{&stdout_, "stdout"}, std::pair{&stderr_, "stderr"}}) {
    verdict::Output output;
    output.rank = spec_.rank;
    output.stream = name;
    capture->finish(output);
    outputs_.push_back(std::move(output));
  }
}

std::vector<std::string> Worker::found_secrets() const {
  std::vector<std::string> out = stdout_.found();
  out.insert(out.end(), stderr_.found().begin(), stderr_.found().end());
  return out;
}

}  // namespace warmgate::target
