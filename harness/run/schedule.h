// Which run is started when: many beside each other where only counts are judged, one alone on the
// machine where its time is, and once more, alone, where one hung.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "harness/run/keys.h"
#include "harness/run/prepare.h"
#include "harness/run/rows.h"
#include "harness/run/run.h"
#include "harness/target/machine_lock.h"
#include "harness/verdict/metrics.h"

namespace warmgate::run {

/// One run: planned, then with what the target gave.
struct Job {
  const scenario::Scenario* scenario = nullptr;
  const scenario::Variant* variant = nullptr;
  int repeat = 0;
  bool time_gated = false;
  std::string skip;  // not started, and why

  bool ended = false;
  target::TargetResult result;
  KeysLeft keys;
  bool disturbed = false;  // other runs went beside it: its times are shown and never gated
  std::string note;        // what a person should know of how it was run
  RowKey row() const;
};

/// What starts a run; run_target outside of tests.
using Starter = std::function<target::TargetResult(
    const target::TargetSpec&, const target::CancelToken&, const target::Progress&)>;

struct ScheduleOptions {
  int jobs = 1, cores = 1;
  PrepareOptions prepare;
  Starter start = target::run_target;
  /// How long to wait for others who hold the machine; then a run is infra, and says who they are.
  std::chrono::milliseconds lock_wait = std::chrono::hours(2);
};

/// True if the gate holds a bound on a time of this scenario: then nothing may run beside it.
bool is_time_gated(const scenario::Scenario& scenario,
                   const std::vector<verdict::Metric>& metrics = {});

/// Runs every job that has no `skip`, and writes the rows started, phase and ended. Each run has a
/// thread of its own for all its life: workers die with the thread that started them. What cannot
/// be started gets an infra_error; what was not reached before a cancel stays without `ended`.
void run_jobs(std::vector<Job>& jobs, const ScheduleOptions& options,
              const target::CancelToken& cancel, RowWriter& rows, const Progress& progress);

/// Cores that this process may use.
int usable_cores();

}  // namespace warmgate::run
