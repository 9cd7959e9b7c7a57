// Starts the workers of one run, watches them to their end, leaves nothing behind.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/trace/event.h"
#include "harness/verdict/verdict.h"

namespace warmgate::target {

struct WorkerSpec {
  std::vector<std::string> argv;           // argv[0] is looked up in PATH if it has no slash
  std::map<std::string, std::string> env;  // added to (over) the inherited environment
  std::string cwd;
  int rank = 0;
  std::vector<int> inherit_fds;  // kept open in the child under the same numbers
};

struct Deadlines {
  std::map<std::string, double> phase_s;  // per phase
  double default_phase_s = 60;
  double silence_s = 30;        // no event and no output from any worker
  double shutdown_grace_s = 5;  // SIGTERM → SIGKILL
  double settle_s = 2;          // leftovers may vanish this long (30 for GPU targets)
  double scale = 1;             // jobs/cores
  std::optional<double> total_s;  // over all phases (--timeout), not scaled; ends it like a deadline
};

struct TargetSpec {
  std::string name;  // for messages
  std::vector<WorkerSpec> workers;
  std::vector<std::string> phases;  // declared order
  Deadlines deadlines;
  std::optional<std::int64_t> memory_bytes;  // RLIMIT_AS of each worker
  std::filesystem::path run_dir;     // private to the run; events dir and scratch live in it
  std::vector<std::string> secrets;  // values to mask in captured output
};

struct TargetResult {
  trace::Trace trace;  // sorted by time, process_end and leftover events included
  std::vector<verdict::WorkerEnd> workers;
  std::vector<verdict::Output> outputs;
  bool hung = false;                  // a deadline or silence ended it
  std::string hang_kind, hang_phase;  // deadline | silence
  bool interrupted = false;           // SIGINT to us
  std::string infra_error;            // could not start: the machine or the harness is at fault
  double wall_s = 0;
};

/// Set by a signal handler or another thread; polled through an eventfd, so cancelling is prompt.
class CancelToken {
 public:
  CancelToken();
  ~CancelToken();
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;
  void cancel();  // async-signal-safe
  bool cancelled() const { return cancelled_.load(); }
  int fd() const { return fd_; }  // readable once cancelled

 private:
  std::atomic<bool> cancelled_{false};
  int fd_ = -1;
};

/// Called from the watching thread: a phase began, a worker ended. Must return quickly.
using Progress = std::function<void(int rank, std::string_view phase)>;

/// Blocks until every worker and every descendant is gone. Never throws for what a worker does.
TargetResult run_target(const TargetSpec& spec, const CancelToken& cancel,
                        const Progress& progress = {});

/// SIGSEGV for 11 …; "signal 64" where the name is unknown.
std::string signal_name(int signal);

}  // namespace warmgate::target
