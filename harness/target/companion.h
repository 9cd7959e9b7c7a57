// What runs beside the workers of a run and looks at them from outside (HTTP, logs, stores): it
// adds events while run_target() watches the processes, and says when its work is over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/trace/event.h"
#include "harness/verdict/verdict.h"

namespace warmgate::target {

/// Takes events from any thread while the run lasts. What comes later is dropped.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// Events need t_ns, src and source; their phases count for deadlines like a worker's. An event
  /// is a sign of life (silence starts anew), so a poll that learned nothing sends none.
  virtual void add(trace::Event event) = 0;
  /// The companion is finished: look now, not at the next event.
  virtual void wake() = 0;
};

/// A worker that was just started.
struct Started {
  int rank = 0;
  int pid = 0;
  std::int64_t t_ns = 0;  // when its process was made
};

/// How a run came to its end.
struct RunEnd {
  bool finished = false;     // the companion's work was over
  bool hung = false;         // a deadline or silence
  bool interrupted = false;  // by the user
};

class Companion {
 public:
  virtual ~Companion() = default;
  /// Before any worker. `marker` is the entry (WARMGATE_RUN=…) of the environment of every process
  /// of the run. `sink` lives until close() has returned. May throw: then nothing is started.
  virtual void prepare(EventSink& sink, const std::string& marker) = 0;
  /// A worker was started. From the watching thread, like all below.
  virtual void started(const Started& worker) = 0;
  /// All workers run; must return at once.
  virtual void start() = 0;
  /// What a worker printed, as it came and unmasked; quick, and of bounded memory. `stream` is
  /// stdout or stderr.
  virtual void output(int rank, std::string_view stream, std::string_view bytes,
                      std::int64_t t_ns) = 0;
  /// A worker ended, by itself or by us.
  virtual void ended(const verdict::WorkerEnd& end) = 0;
  /// False for a worker that may end with 0 before the work is done.
  virtual bool needed(int rank) const = 0;
  /// The work is done, well or not: the workers may be ended, and that end is no crash.
  virtual bool finished() const = 0;
  /// The workers are about to be ended, or have ended: blocking calls return soon, and its threads
  /// with them. Called once, also where start() was not.
  virtual void stop() = 0;
  /// Every process is gone and all output was given: its last events. May wait for what comes back
  /// late (memory of a GPU). Called once, after stop().
  virtual void close(const RunEnd& end) = 0;
};

}  // namespace warmgate::target
