// Events from other threads for the one that watches a run.
#pragma once

#include <mutex>
#include <vector>

#include "harness/target/companion.h"
#include "harness/target/fd.h"

namespace warmgate::target {

class SinkQueue : public EventSink {
 public:
  /// More events than this between two looks are dropped, and counted.
  static constexpr std::size_t kMost = 100000;

  /// Throws std::system_error.
  explicit SinkQueue(std::size_t most = kMost);
  void add(trace::Event event) override;
  void wake() override;
  /// Readable after add() and wake().
  int fd() const { return fd_.get(); }
  /// What came since the last call, in order; the descriptor is not readable any more.
  std::vector<trace::Event> take();
  std::size_t dropped() const;

 private:
  mutable std::mutex mutex_;
  std::vector<trace::Event> events_;
  const std::size_t most_;
  std::size_t dropped_ = 0;
  Fd fd_;
};

}  // namespace warmgate::target
