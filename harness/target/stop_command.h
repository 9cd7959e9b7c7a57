// The program that ends what killing a prefix leaves alive: `docker run` and `kubectl exec` are
// clients, and their work goes on without them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <string>
#include <vector>

#include "harness/target/target.h"
#include "harness/trace/event.h"

namespace warmgate::target {

class StopCommand {
 public:
  explicit StopCommand(boost::asio::io_context& io) : watch_(io), timer_(io) {}
  ~StopCommand();
  StopCommand(const StopCommand&) = delete;
  StopCommand& operator=(const StopCommand&) = delete;

  /// Starts it; `done` is called once, from the io_context, when it ended, was killed at its
  /// deadline, or could not be started at all.
  void run(const StopSpec& spec, const std::vector<std::string>& env, int null_fd,
           std::function<void()> done);
  /// Of its group, while it runs; -1 else.
  pid_t pid() const { return pid_; }
  /// `stop` {exit_code | signal, wall_s, timed_out, error}; after `done`.
  trace::Event event() const;

 private:
  void reap();

  boost::asio::posix::stream_descriptor watch_;
  boost::asio::steady_timer timer_;
  std::function<void()> done_;
  pid_t pid_ = -1;
  std::int64_t start_ns_ = 0, end_ns_ = 0;
  int status_ = 0;
  bool timed_out_ = false;
  std::string error_;
};

}  // namespace warmgate::target
