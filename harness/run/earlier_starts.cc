#include "harness/run/earlier_starts.h"

#include <algorithm>
#include <map>

namespace warmgate::run {
namespace {

struct Span {
  std::int64_t begin, end;  // ns, one clock for all runs of a call
};

Span span_of(const trace::Trace& trace) {
  const auto [first, last] = std::minmax_element(
      trace.events.begin(), trace.events.end(),
      [](const trace::Event& a, const trace::Event& b) { return a.t_ns < b.t_ns; });
  return {first->t_ns, last->t_ns};
}

}  // namespace

void tell_earlier_starts(std::vector<Job>& jobs, const std::string& cache) {
  if (cache.empty()) return;
  std::map<const scenario::Variant*, std::vector<std::size_t>> starts;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    if (job.ended && job.variant->target.kind == scenario::Target::Kind::kNative &&
        !job.variant->target.cold_cache && !job.result.trace.events.empty())
      starts[job.variant].push_back(i);
  }
  for (const auto& [variant, which] : starts) {
    if (which.size() < 2) continue;
    std::vector<std::int64_t> done;  // when a start had done its work
    for (const std::size_t i : which)
      if (jobs[i].result.trace.of("bye").size() == variant->ranks.size())
        done.push_back(span_of(jobs[i].result.trace).end);
    for (const std::size_t i : which) {
      trace::Trace& trace = jobs[i].result.trace;
      const std::int64_t begin = span_of(trace).begin;
      const auto earlier =
          std::count_if(done.begin(), done.end(), [&](std::int64_t end) { return end < begin; });
      if (earlier > 0)
        trace.events.push_back(trace::harness_event(
            "store",
            {{"store", "kernels"}, {"path", cache}, {"status", "filled"}, {"starts", earlier}}));
    }
  }
}

}  // namespace warmgate::run
