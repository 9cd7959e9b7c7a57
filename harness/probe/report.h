// What a probe says: lines of the event protocol, bounded in number, from any thread of the host.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/trace/wire.h"

namespace warmgate::probe {

/// Who speaks: the source of its lines, what its hello promises, and under which names it accounts
/// for itself (`<counters>_own_ms` …).
struct Voice {
  std::string_view src = "probe", engine = "warmgate-probe", counters = "probe";
  std::vector<std::string> emits = {"context", "module", "load", "capture", "graph"};
};

/// A descriptor that was ours when it was opened. A daemon closes what it finds, and the number is
/// somebody else's next; a host that may write no more would be ended by the signal for that.
class OwnFile {
 public:
  void remember(int fd);
  /// Is it still that file, and may `bytes` be written at `offset` (-1: at its end)?
  bool may_write(int fd, std::size_t bytes, std::int64_t offset = -1) const;

 private:
  std::uint64_t device_ = 0, inode_ = 0;
};

class Report {
 public:
  explicit Report(Voice voice = {}) : voice_(std::move(voice)) {}
  /// Opens the channel that the environment names and says hello. False: nobody listens.
  bool open_from_environment();
  /// For tests.
  void open_descriptor(int fd);

  /// Starts a line of a probe's: `src`, process and thread are on it.
  static trace::Line line(std::string_view ev, std::string_view src = "probe");
  /// Of each kind at most 2,000 lines are written, of all at most 12,000; the rest is counted.
  void send(std::string_view ev, const trace::Line& line, std::int64_t t_ns = 0);
  /// The last lines: how many were dropped, the probe's own time, bye. Once.
  void close(std::int64_t own_ns, std::uint64_t calls);
  /// After fork(): this process says nothing more by the parent's channel.
  void forget() { off_.store(true); }
  bool off() const { return off_.load(std::memory_order_relaxed); }

 private:
  void hello();
  /// False for good once the file is not to be written any more.
  bool may_write(std::size_t bytes);

  static constexpr std::size_t kKinds = 16, kMostOfAKind = 2000, kMost = 12000;
  struct Kind {
    std::string name;
    std::size_t lines = 0;
  };
  Voice voice_;
  std::mutex mutex_;
  trace::EventWriter writer_;
  Kind kinds_[kKinds];
  std::size_t dropped_ = 0;
  bool closed_ = false;
  OwnFile file_;
  std::atomic<bool> off_{false};
};

/// The kernel's number of the calling thread.
long thread_id();

}  // namespace warmgate::probe
