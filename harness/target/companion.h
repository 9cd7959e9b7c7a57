// What runs beside the workers of a run and looks at them from outside (HTTP, logs, stores): it
// adds events while run_target() watches the processes, and says when its work is over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/trace/event.h"

namespace warmgate::target {

/// Takes events from any thread while the run lasts. What comes later is dropped.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// Events need t_ns, src and source; their phases count for deadlines like a worker's. An event
  /// is a sign of life (silence starts anew), so a poll that learned nothing sends none.
  virtual void add(trace::Event event) = 0;
  /// The companion is finished (or changed its mind): look now, not at the next event.
  virtual void wake() = 0;
};

/// Who a member is, once it runs.
struct Started {
  int rank = 0;
  int pid = 0;
  std::int64_t t_ns = 0;  // just before its process was made
};

class Companion {
 public:
  virtual ~Companion() = default;
  /// All workers run. Called once, from the thread that watches them; must return at once.
  /// `sink` lives until stop() has returned.
  virtual void start(EventSink& sink) = 0;
  /// A worker was started; before start(). From the watching thread.
  virtual void started(const Started&) {}
  /// What a worker printed, as it came and unmasked. From the watching thread; quick, and of
  /// bounded memory. `stream` is stdout or stderr.
  virtual void output(int rank, std::string_view stream, std::string_view bytes,
                      std::int64_t t_ns) = 0;
  /// A worker ended by itself or by us. From the watching thread.
  virtual void ended(int rank) = 0;
  /// The work is done, well or not: the workers may be ended, and that end is no crash.
  virtual bool finished() const = 0;
  /// The workers are about to be ended: blocking calls return soon, no event follows but those
  /// of the output that is still read. Called once; returns when its threads have ended.
  virtual void stop() = 0;
  /// Every process is gone and all output was given: last events (what the logs say in the end).
  /// Called once, after stop(); `sink` is not the one of start() and takes events to the end.
  virtual void close(EventSink&) {}
};

}  // namespace warmgate::target
