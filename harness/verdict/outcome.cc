#include "harness/verdict/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <set>

#include "harness/contract/cause.h"
#include "harness/contract/hang_text.h"
#include "harness/contract/view.h"
#include "harness/trace/quantity.h"

namespace warmgate::verdict {
namespace {

using contract::Cause;
using contract::View;

bool badly(const WorkerEnd& end) {
  return !end.killed_by_us && (end.signal != 0 || (end.exited && end.exit_code != 0));
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What allocators and run-times of C++, Python and CUDA say when memory is out.
bool speaks_of_memory(std::string_view text) {
  constexpr std::array<std::string_view, 8> words = {"bad_alloc",
                                                     "MemoryError",
                                                     "out of memory",
                                                     "Out of memory",
                                                     "OutOfMemory",
                                                     "Cannot allocate memory",
                                                     "cannot allocate memory",
                                                     "OUT_OF_MEMORY"};
  return std::any_of(words.begin(), words.end(), [&](auto word) { return contains(text, word); });
}

template <typename Predicate>
bool said(const RunFacts& facts, int rank, Predicate predicate) {
  for (const Output& output : facts.outputs) {
    if (rank >= 0 && output.rank != rank) continue;
    if (predicate(output.tail) || predicate(output.head)) return true;
    for (const std::string& line : output.matched)
      if (predicate(line)) return true;
  }
  return false;
}

// The one worker that ended first; its end is the process_end that came first in the trace, if the
// trace has one, else the first in the list.
const WorkerEnd* first_bad(const RunFacts& facts, int preferred_rank) {
  const WorkerEnd* first = nullptr;
  for (const WorkerEnd& end : facts.workers) {
    if (!badly(end)) continue;
    if (end.rank == preferred_rank) return &end;
    if (!first) first = &end;
  }
  return first;
}

// A process that is no worker (an orphan that the harness inherited) and died by a signal.
const trace::Event* dead_descendant(const RunFacts& facts, const trace::Trace& trace) {
  for (const trace::Event& e : trace.events) {
    if (e.ev != "process_end" || e.flag("killed_by_us") || e.num("signal") == 0) continue;
    const std::int64_t pid = e.num("pid");
    const bool worker = std::any_of(facts.workers.begin(), facts.workers.end(),
                                    [&](const WorkerEnd& w) { return w.pid == pid; });
    if (!worker) return &e;
  }
  return nullptr;
}

std::string crash_kind(const RunFacts& facts, const WorkerEnd* end, const Cause* cause, int signal,
                       int rank) {
  const bool fault = cause && cause->kind == Cause::Kind::kFault;
  if (fault && (speaks_of_memory(cause->type) || speaks_of_memory(cause->message))) return "oom";
  if (said(facts, rank, speaks_of_memory)) return "oom";
  // The kernel kills without a word; near its limit there is no other explanation.
  if (end && facts.memory_limit_bytes && signal == SIGKILL &&
      static_cast<double>(end->peak_rss_bytes) >=
          0.8 * static_cast<double>(*facts.memory_limit_bytes))
    return "oom";
  if (signal == SIGABRT && said(facts, rank, [](std::string_view text) {
        return contains(text, "Assertion") || contains(text, "assertion");
      }))
    return "assert";
  if (fault) return "exception";
  return signal != 0 ? "signal" : "exit";
}

std::set<int> ranks_of(const trace::Trace& trace, const RunFacts& facts) {
  std::set<int> ranks;
  for (const WorkerEnd& end : facts.workers) ranks.insert(end.rank);
  if (ranks.empty())
    for (int r = 0; r < std::clamp(trace.world, 1, 1024); ++r) ranks.insert(r);
  return ranks;
}

std::vector<std::string> ended_everywhere(const View& view, const std::set<int>& ranks) {
  std::map<std::string, std::set<int>> ended;
  std::vector<std::string> order;
  const int unnamed = view.trace().world <= 1 ? 0 : -1;
  for (const trace::Event& e : view.trace().events) {
    if (e.ev != "phase_end" || contract::text(e, "status") != "ok") continue;
    const std::string phase(contract::text(e, "phase"));
    if (ended.find(phase) == ended.end()) order.push_back(phase);
    ended[phase].insert(contract::rank_of(e, unnamed));
  }
  std::erase_if(order, [&](const std::string& phase) {
    return !std::includes(ended[phase].begin(), ended[phase].end(), ranks.begin(), ranks.end());
  });
  return order;
}

// The last phase that `rank` was in; "" if it never began one.
std::string last_phase(const View& view, int rank) {
  const int unnamed = view.trace().world <= 1 ? 0 : -1;
  std::string last;
  for (const trace::Event& e : view.trace().events) {
    if (e.ev == "phase_begin" && (rank < 0 || contract::rank_of(e, unnamed) == rank))
      last = std::string(contract::text(e, "phase"));
  }
  return last;
}

bool said_hello(const View& view, int rank) {
  const int unnamed = view.trace().world <= 1 ? 0 : -1;
  for (const trace::Event& e : view.trace().events)
    if (e.ev == "hello" && (view.trace().world <= 1 || contract::rank_of(e, unnamed) == rank))
      return true;
  return false;
}

void infra(RunRecord& run, std::string kind, std::string reason) {
  run.outcome = Outcome::kInfra;
  run.kind = std::move(kind);
  run.reason = std::move(reason);
}

// What the log calls the worker that failed first, with its member where there are several.
std::string cause_worker(const View& view, const Cause& cause) {
  const trace::Event& e = view.event(cause.event);
  const std::string worker = e.str("worker"), member = e.str("member");
  if (worker.empty() || member.empty()) return worker + member;
  return worker + " of " + member;
}

// It ended by itself, with nothing wrong to be seen, while it was still to be asked.
void ended_early(const View& view, RunRecord& run) {
  run.outcome = Outcome::kCrashed;
  run.kind = "exit";
  run.exit_code = 0;
  for (const WorkerEnd& end : run.workers) {
    if (end.killed_by_us) continue;
    run.first_failed_rank = end.rank;
    break;
  }
  run.phase = last_phase(view, run.first_failed_rank);
  run.reason =
      fmt::format("rank {} ended with code 0 {}, before its work was done", run.first_failed_rank,
                  run.phase.empty() ? "before its first phase" : "in " + run.phase);
}

void crashed(const RunFacts& facts, const View& view, const WorkerEnd* end,
             const trace::Event* descendant, RunRecord& run) {
  const auto cause = contract::first_cause(view);
  const int signal = end ? end->signal : static_cast<int>(descendant->num("signal"));
  const bool known = cause && cause->kind != Cause::Kind::kDeadline;
  const int rank = known && cause->rank >= 0 ? cause->rank
                   : end                     ? end->rank
                                             : contract::rank_of(*descendant, -1);
  run.outcome = Outcome::kCrashed;
  run.first_failed_rank = rank;
  if (signal != 0)
    run.signal_name = contract::signal_text(signal);
  else
    run.exit_code = end->exit_code;
  run.kind = crash_kind(facts, end, known ? &*cause : nullptr, signal, end ? end->rank : rank);
  run.phase = known && !cause->phase.empty() ? cause->phase : last_phase(view, rank);
  const std::string how = signal != 0 ? "ended by " + run.signal_name
                                      : fmt::format("ended with code {}", *run.exit_code);
  std::string where = run.phase.empty() ? "before its first phase" : "in " + run.phase;
  if (end && !said_hello(view, end->rank)) where = "before it said hello";
  const std::string worker = known ? cause_worker(view, *cause) : "";
  run.reason =
      fmt::format("rank {}{} {} {}", rank, worker.empty() ? "" : " (" + worker + ")", how, where);
  if (run.kind == "oom") run.reason += ", out of memory";
  if (run.kind == "assert") run.reason += ", an assertion failed";
  if (known && cause->kind == Cause::Kind::kFault)
    run.reason +=
        fmt::format(": {}{}{}", cause->type, cause->message.empty() ? "" : ": ", cause->message);
}

// Who lacks what the others reached, by the log; "" if it does not say.
std::string silent_workers(const View& view) {
  std::string out;
  for (const trace::Event* reading : view.trace().of("reading")) {
    const nlohmann::json* silence = reading->body.nested("silence");
    const auto missing = silence ? silence->find("missing") : nlohmann::json::const_iterator();
    if (!silence || missing == silence->end() || !missing->is_array()) continue;
    for (const nlohmann::json& worker : *missing) {
      if (worker.is_string()) out += (out.empty() ? "" : ", ") + worker.get<std::string>();
    }
  }
  return out;
}

// A log tells workers apart: which one stayed behind, and in which phase. The clock knows only the
// phase that somebody began last.
void hung_by_the_log(const View& view, RunRecord& run) {
  for (const trace::Event* reading : view.trace().of("reading")) {
    // Without a name it knows no more than the clock does.
    if (reading->str("outcome") != "hung" || reading->str("failing_worker").empty()) continue;
    if (const auto phase = reading->str("failing_phase"); !phase.empty()) run.phase = phase;
    const std::int64_t rank = reading->num("failing_rank", -1);
    if (rank >= 0 && view.trace().world <= 1) run.first_failed_rank = static_cast<int>(rank);
    return;
  }
}

// Servers that were asked whether they are ready until the end: where, how often, what came last.
std::string never_ready(const View& view) {
  std::string out;
  for (const trace::Event* e : view.trace().of("http")) {
    if (e->str("when") != "never ready") continue;
    const std::int64_t asked = e->num("asked");
    const std::string often = asked == 1 ? "once" : trace::grouped(asked) + " times";
    const std::string of = view.trace().world > 1 ? " of " + e->str("member") : "";
    out += e->str("clock") == "port"
               ? fmt::format("; port {}{} was tried {}, last: {}", e->num("port"), of, often,
                             e->str("last"))
               : fmt::format("; GET {}{} was asked {} and never answered {}, last: {}",
                             e->str("path"), of, often, e->num("wanted", 200), e->str("last"));
  }
  return out;
}

void hung(const RunFacts& facts, const View& view, RunRecord& run) {
  run.outcome = Outcome::kHung;
  run.kind = facts.hang_kind.empty() ? "deadline" : facts.hang_kind;
  run.phase = facts.hang_phase;
  const auto sent = view.trace().of("deadline");
  if (!sent.empty() && sent.front()->rank) run.first_failed_rank = *sent.front()->rank;
  if (run.phase.empty()) run.phase = last_phase(view, run.first_failed_rank);
  hung_by_the_log(view, run);
  run.reason = run.kind == "silence" ? "no event and no output any more"
                                     : "it did not end within its deadline";
  run.reason += run.phase.empty() ? ", before its first phase" : ", in " + run.phase;
  const bool sigkill = std::any_of(facts.workers.begin(), facts.workers.end(),
                                   [](const WorkerEnd& w) { return w.needed_sigkill; });
  if (sigkill) run.reason += "; it ignored SIGTERM, SIGKILL ended it";
  run.reason += never_ready(view);
  if (const std::string doing = contract::most_telling_hang(view); !doing.empty())
    run.reason += "; " + doing;
  const std::string missing = silent_workers(view);
  if (!missing.empty()) run.reason += "; least was heard of " + missing;
  const auto cause = contract::first_cause(view);
  if (cause && cause->kind == Cause::Kind::kFault)
    run.reason += fmt::format("; before that: {}: {}", cause->type, cause->message);
}

void failed_or_passed(RunRecord& run) {
  const contract::Result* first = nullptr;
  std::size_t broken = 0;
  for (const contract::Result& result : run.contracts) {
    if (result.state != contract::State::kBroken || result.findings.empty()) continue;
    ++broken;
    // Reports show contracts in the order of the registry, protocol first: the more basic promise
    // explains the others.
    if (!first) first = &result;
  }
  if (!first) {
    run.outcome = Outcome::kPassed;
    run.kind.clear();
    run.reason = run.allowed.empty()
                     ? "all phases ended and no contract broke"
                     : fmt::format("all phases ended; {} allowed",
                                   contract::counted(run.allowed.size(), "finding"));
    return;
  }
  const contract::Finding& finding = first->findings.front();
  run.outcome = Outcome::kFailed;
  run.kind = first->contract == "protocol" ? "protocol" : "contract";
  run.phase = finding.phase;
  run.first_failed_rank = finding.rank;
  run.reason = fmt::format("{} broke: {}", first->contract, finding.message);
  if (first->findings.size() > 1)
    run.reason += fmt::format(" (and {} more)", first->findings.size() - 1);
  if (broken > 1) run.reason += fmt::format("; {} in all", contract::counted(broken, "contract"));
}

}  // namespace

void classify(const RunFacts& facts, const View& view, RunRecord& run) {
  run.workers = facts.workers;
  run.outputs = facts.outputs;
  run.reason.clear();
  run.phase.clear();
  run.kind.clear();
  run.signal_name.clear();
  run.exit_code.reset();
  run.first_failed_rank = -1;
  if (!facts.skip_reason.empty()) {
    run.outcome = Outcome::kSkipped;
    run.reason = facts.skip_reason;
    return;
  }
  run.phases_ended = ended_everywhere(view, ranks_of(run.trace, facts));
  if (facts.interrupted) return infra(run, "interrupted", "interrupted by the user");
  if (!facts.infra_error.empty()) return infra(run, "infra", facts.infra_error);
  for (const trace::Event& e : run.trace.events)
    if (e.ev == "setup_error")
      return infra(run, "setup", "the engine could not be set up: " + e.str("message"));
  const auto cause = contract::first_cause(view);
  const WorkerEnd* end = first_bad(facts, cause ? cause->rank : -1);
  const trace::Event* descendant = end ? nullptr : dead_descendant(facts, run.trace);
  if (end || descendant) return crashed(facts, view, end, descendant, run);
  if (facts.hung) return hung(facts, view, run);
  if (facts.ended_early) return ended_early(view, run);
  failed_or_passed(run);
}

}  // namespace warmgate::verdict
