// What the probe says: lines of the event protocol, bounded in number, from any thread of the host.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "harness/trace/wire.h"

namespace warmgate::probe {

class Report {
 public:
  /// Opens the channel that the environment names and says hello. False: nobody listens.
  bool open_from_environment();
  /// For tests.
  void open_descriptor(int fd);

  /// Starts a line of the probe's: `src`, process and thread are on it.
  static trace::Line line(std::string_view ev);
  /// Of each kind at most 2,000 lines are written, of all at most 12,000; the rest is counted.
  void send(std::string_view ev, const trace::Line& line, std::int64_t t_ns = 0);
  /// The last lines: how many were dropped, the probe's own time, bye. Once.
  void close(std::int64_t own_ns, std::uint64_t calls);
  /// After fork(): this process says nothing more by the parent's channel.
  void forget() { off_.store(true); }
  bool off() const { return off_.load(std::memory_order_relaxed); }

 private:
  void hello();
  /// False once the descriptor is no longer the file that it was (a daemon closes what it finds,
  /// and the number is somebody else's next), or the host may write no more: its signal for that
  /// would end it.
  bool may_write(std::size_t bytes);

  static constexpr std::size_t kKinds = 16, kMostOfAKind = 2000, kMost = 12000;
  struct Kind {
    std::string name;
    std::size_t lines = 0;
  };
  std::mutex mutex_;
  trace::EventWriter writer_;
  Kind kinds_[kKinds];
  std::size_t dropped_ = 0;
  bool closed_ = false;
  std::uint64_t device_ = 0, inode_ = 0;
  std::atomic<bool> off_{false};
};

/// The kernel's number of the calling thread.
long thread_id();

}  // namespace warmgate::probe
