// One worker while it runs: its process, its three pipes, what it printed, how it ended.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/process/v2/process.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/target/capture.h"
#include "harness/target/fd.h"
#include "harness/target/launch.h"
#include "harness/target/mask.h"
#include "harness/target/target.h"

namespace warmgate::target {

/// What a worker is told to run, besides its WorkerSpec.
struct WorkerOrders {
  std::vector<std::string> env;  // whole environment but WARMGATE_EVENTS_FD
  std::optional<std::int64_t> memory_bytes;
  int stdin_fd = -1;
};

class Worker {
 public:
  using Executor = boost::asio::io_context::executor_type;

  struct Hooks {
    std::function<void()> heard;          // an event or output came
    std::function<void(Worker&)> events;  // new events stand at the end of the trace
    std::function<void(Worker&)> ended;   // reaped; end() is complete
    std::function<void(Worker&, std::string_view stream, std::string_view bytes)> output = {};
  };

  /// `trace`, `secrets` and `scratch` (where pipes are read into) outlive the worker.
  Worker(boost::asio::io_context& io, const WorkerSpec& spec, trace::Trace& trace,
         const std::vector<std::string>& secrets, std::vector<char>& scratch, Hooks hooks);

  /// Throws std::system_error if it cannot be started.
  void start(const WorkerOrders& orders);

  int rank() const { return spec_.rank; }
  pid_t pid() const { return end_.pid; }
  const std::string& source() const { return source_; }  // "rank0": of its events
  bool running() const { return running_; }
  bool failed() const;  // ended by itself, with a signal or a code other than 0
  const verdict::WorkerEnd& end() const { return end_; }
  std::int64_t started_ns() const { return started_ns_; }
  std::int64_t ended_ns() const { return ended_ns_; }
  bool peak_exact() const { return peak_exact_; }
  bool saw_secret() const { return spotter_.seen(); }
  /// What it printed that is a secret by its shape. After finish().
  std::vector<std::string> found_secrets() const;
  /// Lines it printed that look like a cause; for evidence. After finish().
  const std::vector<verdict::Output>& outputs() const { return outputs_; }

  /// To its group, and to itself where it left that. A worker that ended before gets none, and its
  /// end stays its own. True if it was sent.
  bool signal(int number);
  /// If it runs: its end is no failure of its own from here on, whatever brings it about.
  void excuse();
  /// Its memory's high-water mark so far, as long as it runs.
  void sample_peak();
  /// Reads what the pipes hold now. True if all of them have ended.
  bool drain();
  /// Inodes of the pipes that somebody still holds open.
  std::vector<std::uint64_t> open_pipes() const;
  /// No more will be read.
  void finish();

 private:
  struct Channel {
    explicit Channel(boost::asio::io_context& io) : stream(io) {}
    boost::asio::posix::basic_stream_descriptor<Executor> stream;
    std::function<void(std::string_view)> sink;
  };
  void watch(Channel& channel);
  void poll_events();
  enum class Reading { kMore, kDrained, kEnded };
  Reading read(int fd, const std::function<void(std::string_view)>& sink, int rounds,
               bool until_short);
  Reading read_events(int rounds, bool until_short);
  void watch_end();
  void reap();

  boost::asio::io_context& io_;
  const WorkerSpec& spec_;
  trace::Trace& trace_;
  std::vector<char>& scratch_;
  Hooks hooks_;
  std::string source_;
  trace::LineReader reader_;
  SecretSpotter spotter_;
  Capture stdout_, stderr_;
  struct Events {
    explicit Events(boost::asio::io_context& io) : timer(io) {}
    Fd pipe;
    boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                      boost::asio::wait_traits<std::chrono::steady_clock>, Executor>
        timer;
    std::chrono::milliseconds pause{0};
  } events_;
  Channel out_, err_;
  boost::asio::posix::basic_stream_descriptor<Executor> exit_watch_;
  // Owns the process: whatever is thrown, it is killed and waited for.
  std::optional<boost::process::v2::basic_process<Executor>> process_;
  std::vector<verdict::Output> outputs_;
  verdict::WorkerEnd end_;
  std::int64_t started_ns_ = 0, ended_ns_ = 0;
  std::int64_t own_peak_kib_ = 0;  // ours at the time of the start
  std::int64_t sampled_peak_ = 0;
  bool peak_exact_ = false, running_ = false, signalled_ = false;
};

}  // namespace warmgate::target
