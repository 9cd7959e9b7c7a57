// One run in numbers: when its clocks struck, how long it was in each phase, what was served.
#include <algorithm>
#include <cmath>
#include <set>

#include "harness/contract/view.h"
#include "harness/trace/vocabulary.h"
#include "reports/evidence.h"

namespace warmgate::reports {
namespace {

using verdict::RunRecord;

double seconds(std::int64_t earlier, std::int64_t later) {
  return static_cast<double>(contract::elapsed_ns(earlier, later)) / 1e9;
}

void raise(std::map<std::string, double>& into, const std::string& name, double value) {
  const auto [it, fresh] = into.emplace(name, value);
  if (!fresh) it->second = std::max(it->second, value);
}

// When each rank was started: its end less how long it lived, else the first thing it said; under
// -1 the first start of all.
std::map<int, std::int64_t> starts(const trace::Trace& trace) {
  std::map<int, std::int64_t> out;
  for (const trace::Event& e : trace.events) {
    if (e.src == "span") continue;  // when it began is what the engine's own clock claims
    std::int64_t t = e.t_ns;
    const double wall = e.ev == "process_end" ? e.real("wall_s") : 0;
    if (wall > 0 && wall < 1e7) t -= static_cast<std::int64_t>(wall * 1e9);
    for (const int rank : {contract::rank_of(e, -1), -1}) {
      const auto [it, fresh] = out.emplace(rank, t);
      if (!fresh) it->second = std::min(it->second, t);
    }
  }
  return out;
}

}  // namespace

RunEvidence run_evidence(const RunRecord& run) {
  RunEvidence out;
  const std::map<int, std::int64_t> start = starts(run.trace);
  std::map<std::pair<int, std::string>, std::int64_t> begun;
  std::map<std::string, std::map<int, double>> phases;
  std::set<std::pair<int, std::string>> struck;
  std::int64_t ok = 0, ended = 0;
  for (const trace::Event& e : run.trace.events) {
    const int rank = contract::rank_of(e, -1);
    if (e.ev == "ready") {
      const std::string clock(contract::text(e, "clock"));
      if (clock.empty() || !struck.insert({rank, clock}).second) continue;
      raise(out.clocks_s, clock, seconds(start.at(rank), e.t_ns));
    } else if (e.ev == "phase_begin") {
      begun[{rank, std::string(contract::text(e, "phase"))}] = e.t_ns;
    } else if (e.ev == "phase_end") {
      const std::string phase(contract::text(e, "phase"));
      const auto it = begun.find({rank, phase});
      if (it == begun.end() || e.t_ns < it->second) continue;
      phases[phase][rank] += seconds(it->second, e.t_ns);
      begun.erase(it);
    } else if (e.ev == "request" && (rank <= 0 || e.src != "channel")) {
      // Every rank of one engine tells of the same; who asks from outside tells once.
      ++ended;
      ok += e.flag("ok") ? 1 : 0;
    }
  }
  for (const auto& [phase, ranks] : phases) {
    for (const auto& [rank, value] : ranks) raise(out.phases_s, phase, value);
  }
  // A figure of that name was made by who knows the target better.
  for (const auto& [name, value] : run.figures) {
    if (!std::isfinite(value) || !name.ends_with("_s")) continue;
    const std::string stem = name.substr(0, name.size() - 2);
    const auto& known = trace::phases();
    if (std::find(known.begin(), known.end(), stem) != known.end()) {
      out.phases_s[stem] = value;
    } else if (stem.starts_with("time_to_")) {
      out.clocks_s[stem.substr(8)] = value;
    }
  }
  const bool tells = run.trace.emits().count("request") > 0;
  if (ended > 0 || (tells && std::any_of(run.trace.events.begin(), run.trace.events.end(),
                                         [](const trace::Event& e) {
                                           return e.ev == "phase_begin" &&
                                                  contract::text(e, "phase") == "serve";
                                         }))) {
    out.requests_ok = ok;
    out.requests_ended = ended;
  }
  return out;
}

}  // namespace warmgate::reports
