// Which worker failed first. Several contracts and the outcome of a run ask the same question.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "harness/contract/view.h"

namespace warmgate::contract {

struct Cause {
  enum class Kind { kFault, kProcess, kPhase, kDeadline };
  Kind kind = Kind::kFault;
  int rank = -1;          // -1: of no single rank
  std::size_t event = 0;  // index into the trace
  std::int64_t t_ns = 0;
  std::string phase;    // in which it happened; "" if before the first
  std::string type;     // fault type, signal name, "exit 3", "phase failed", deadline or silence
  std::string message;  // one sentence
  bool echo = false;    // only tells of another rank's failure
};

/// SIGSEGV for 11 and so on; "signal 64" where the number has no common name. Signal numbers of
/// Linux.
std::string signal_text(std::int64_t signal);

/// True for a process_end that is a failure of the worker's own: a signal or a code other than 0,
/// and no signal of the harness came before.
bool ended_badly(const trace::Event& process_end);

/// True for a fault that only reports that another rank failed or did not come (a collective's).
bool is_echo(const trace::Event& fault);

/// True for the two faults with which an event writer tells that it dropped lines; nothing of the
/// engine's failed.
bool is_writer_limit(const trace::Event& fault);

/// The earliest real cause before any signal of the harness: a fault, a worker's end by a signal or
/// a code other than 0, or a phase that ended with another status than ok; a deadline if nothing of
/// that kind came before it. Where a worker dies without a word, the fault of a rank that only lost
/// its peer is not the cause, even if it was written first. A fault
/// after which its rank went on to another phase has recovered. Empty if nothing failed.
std::optional<Cause> first_cause(const View& view);

}  // namespace warmgate::contract
