// From what happened to one word for it: passed, failed, crashed, hung, infra or skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/contract/view.h"
#include "harness/verdict/verdict.h"

namespace warmgate::verdict {

/// What the watcher of a run knows besides the trace.
struct RunFacts {
  std::vector<WorkerEnd> workers;
  std::vector<Output> outputs;
  bool hung = false;                  // the harness ended it: deadline or silence
  std::string hang_kind, hang_phase;  // deadline | silence
  bool ended_early = false;           // a server ended, however well, before its work was done
  bool interrupted = false;           // the user did
  std::string infra_error;            // it could not be started or watched
  std::string skip_reason;            // needs that this machine does not meet
  std::optional<std::int64_t> memory_limit_bytes;
};

/// Sets outcome, reason, kind, phase, signal_name, exit_code, first_failed_rank and phases_ended of
/// `run`, whose trace and contracts (after `allow`) must be there. Workers and outputs are copied;
/// `view` is of the run's own trace.
///
/// In this order: skipped; interrupted, a harness failure or a `setup_error` is infra; a worker
/// that ended by a signal or a code other than 0 that no signal of ours caused is crashed (kind
/// oom, assert, exception, signal, exit), and so is a server that ended with 0 too early; a
/// deadline or silence is hung; a contract with findings that `allow` does not list is failed; else
/// passed.
void classify(const RunFacts& facts, const contract::View& view, RunRecord& run);

}  // namespace warmgate::verdict
