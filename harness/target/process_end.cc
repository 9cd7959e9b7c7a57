#include "harness/target/process_end.h"

#include "harness/target/evidence.h"
#include "harness/target/mask.h"

namespace warmgate::target {

trace::Event process_end(const Worker& worker, const TargetSpec& spec, const trace::Trace& trace,
                         bool kernel_killed) {
  const verdict::WorkerEnd& end = worker.end();
  trace::json body = {{"pid", end.pid},
                      {"killed_by_us", end.killed_by_us},
                      {"needed_sigkill", end.needed_sigkill},
                      {"wall_s", end.wall_s},
                      {"cpu_s", end.cpu_s}};
  if (end.peak_rss_bytes > 0) {  // else not observed
    body["peak_rss_bytes"] = end.peak_rss_bytes;
    body["peak_exact"] = worker.peak_exact();
  }
  if (end.exited) {
    body["exit_code"] = end.exit_code;
  } else {
    body["signal"] = end.signal;
    body["signal_name"] = signal_name(end.signal);
  }
  const std::string evidence =
      oom_evidence(end, worker.source(), trace, worker.outputs(), kernel_killed);
  if (!evidence.empty()) {
    body["oom"] = true;
    body["oom_evidence"] = mask(evidence, spec.secrets);
  }
  if (spec.memory_bytes) body["memory_limit_bytes"] = *spec.memory_bytes;
  trace::Event event = trace::harness_event("process_end", body, end.rank);
  if (worker.ended_ns() > 0) event.t_ns = worker.ended_ns();
  return event;
}

}  // namespace warmgate::target
