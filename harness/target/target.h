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
  /// Our own engine: it knows no secret but those that it was given, which are found by value.
  bool ours = false;
  std::vector<int> inherit_fds;  // kept open in the child under the same numbers
};

struct Deadlines {
  std::map<std::string, double> phase_s;  // per phase
  double default_phase_s = 60;
  double silence_s = 30;        // no event and no output from any worker
  double shutdown_grace_s = 5;  // SIGTERM → SIGKILL
  double settle_s = 2;          // leftovers may vanish this long (30 for GPU targets)
  double scale = 1;             // jobs/cores
  double peer_grace_s = 0.1;    // after one worker failed, the others may end by themselves
  /// Over all phases (--timeout), not scaled; ends it like a deadline. Without it twice the sum of
  /// the phases' deadlines (scaled) bounds a worker that goes round in circles.
  std::optional<double> total_s;
};

/// What is run before the workers are ended, because ending them is not enough.
struct StopSpec {
  std::vector<std::string> argv;  // empty: nothing
  std::string cwd;
  std::map<std::string, std::string> env;  // over the inherited environment
  double deadline_s = 30;                  // then it is killed, and the workers are ended
};

class Companion;  // companion.h

struct TargetSpec {
  std::string name;  // for messages
  std::vector<WorkerSpec> workers;
  std::vector<std::string> phases;  // declared order
  Deadlines deadlines;
  std::optional<std::int64_t> memory_bytes;  // RLIMIT_AS of each worker
  std::filesystem::path run_dir;     // private to the run; events dir and scratch live in it
  std::vector<std::string> secrets;  // values to mask in captured output
  StopSpec stop;
  /// A folder for events of processes that get no channel, although all workers are ours.
  bool events_dir = false;
  /// Called from the watching thread for each event as it comes, unmasked; must return quickly.
  std::function<void(const trace::Event&)> on_event;
  Companion* companion = nullptr;  // outlives the run; a run without one ends when its workers do
};

/// Where processes of a run that have no descriptor of ours leave their events.
std::filesystem::path events_folder(const TargetSpec& spec);

/// Beside the events: pipes and files of CUDA's core dumps, each with the process's number behind.
inline constexpr const char* kCorePipe = "core-pipe.";
inline constexpr const char* kCoreFile = "core.";

struct TargetResult {
  trace::Trace trace;  // sorted by time, process_end and leftover events included
  std::vector<verdict::WorkerEnd> workers;
  std::vector<verdict::Output> outputs;
  bool hung = false;                  // a deadline or silence ended it
  std::string hang_kind, hang_phase;  // deadline | silence
  bool interrupted = false;           // SIGINT to us
  int first_failed_rank = -1;         // whose end was the first failure before any signal of ours
  std::string infra_error;            // could not start: the machine or the harness is at fault
  bool finished = false;              // the companion said that its work was over
  bool ended_early = false;           // a worker ended before it said so
  double wall_s = 0;
  /// What turned out to be a secret while it ran; masked in all of the above.
  std::vector<std::string> secrets;
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
/// rank is -1 for a source that is no rank; phase is "ended" where the worker ended.
using Progress = std::function<void(int rank, std::string_view phase)>;

/// Blocks until every worker and every descendant is gone. Never throws for what a worker does.
///
/// Each worker gets WARMGATE_RUN (which run it belongs to), WARMGATE_EVENTS_FD, WARMGATE_EVENTS_DIR
/// (run_dir/events) and TMPDIR (run_dir/tmp), stdin from /dev/null, a process group of its own.
/// Events of the harness: per worker `process_end` {pid, exit_code | signal and signal_name,
/// killed_by_us, needed_sigkill, peak_rss_bytes and peak_exact (false: the last sample, the true
/// peak may be higher; both absent if nothing was seen), wall_s, cpu_s, memory_limit_bytes, and
/// where there is evidence for it oom: true with oom_evidence}; `deadline` {phase, kind: deadline |
/// silence, after_s}; `leftover` {what: process | file | port | shm, pid, cmd | path | port; of shm
/// also of_run and why, since not all that is new in /dev/shm is a run's}. Leftovers are judged
/// only where the workers ended by themselves, or by SIGTERM once the companion was finished: what
/// is still there after any other end by us is removed
/// and not held against them. The spec's stop is run once, before the workers get SIGTERM or after
/// they all ended: `stop` {exit_code | signal | error, timed_out, wall_s}.
TargetResult run_target(const TargetSpec& spec, const CancelToken& cancel,
                        const Progress& progress = {});

/// SIGSEGV for 11 …; "signal 64" where the name is unknown.
std::string signal_name(int signal);

}  // namespace warmgate::target
