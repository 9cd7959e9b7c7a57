// Writes the calls that threads of this process are in into the run's folder (trace/wire_calls.h).
#pragma once

#include <cstdint>

#include "harness/trace/wire_calls.h"

namespace warmgate::probe {

class CallTable {
 public:
  CallTable() = default;
  CallTable(const CallTable&) = delete;
  CallTable& operator=(const CallTable&) = delete;
  /// Makes the file in $WARMGATE_EVENTS_DIR; false, and nothing is kept, where that cannot be.
  bool open_from_environment();
  /// For tests; `file` outlives this and every thread that calls.
  void use(trace::CallTableFile* file);
  /// The calling thread is in `call` from `now_ns` on. A few nanoseconds; from any thread.
  void enter(const char* call, std::int64_t now_ns);
  void leave();

 private:
  trace::CallSlot* mine();

  trace::CallTableFile* file_ = nullptr;
};

}  // namespace warmgate::probe
