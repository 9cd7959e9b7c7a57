#include "harness/contract/cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

namespace warmgate::contract {
namespace {

constexpr const char* kSignals[] = {
    "",          "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",   "SIGTRAP", "SIGABRT", "SIGBUS",
    "SIGFPE",    "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",  "SIGPIPE", "SIGALRM", "SIGTERM",
    "SIGSTKFLT", "SIGCHLD", "SIGCONT",   "SIGSTOP", "SIGTSTP",  "SIGTTIN", "SIGTTOU", "SIGURG",
    "SIGXCPU",   "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",   "SIGPWR",  "SIGSYS"};

Cause from_fault(const View& view, std::size_t i) {
  const trace::Event& e = view.event(i);
  Cause cause;
  cause.kind = Cause::Kind::kFault;
  cause.type = std::string(text(e, "type"));
  cause.message = std::string(text(e, "message"));
  cause.echo = is_echo(e);
  return cause;
}

Cause from_process(const View& view, std::size_t i) {
  const trace::Event& e = view.event(i);
  Cause cause;
  cause.kind = Cause::Kind::kProcess;
  const std::int64_t signal = e.num("signal");
  cause.type = signal != 0 ? signal_text(signal) : fmt::format("exit {}", e.num("exit_code"));
  cause.message =
      signal != 0 ? "ended by " + cause.type : "ended with code " + cause.type.substr(5);
  return cause;
}

Cause from_phase(const View& view, std::size_t i) {
  Cause cause;
  cause.kind = Cause::Kind::kPhase;
  cause.type = "phase failed";
  cause.message = fmt::format("phase {} ended with status '{}'", text(view.event(i), "phase"),
                              text(view.event(i), "status"));
  if (const auto reason = text(view.event(i), "reason"); !reason.empty()) {
    cause.message += fmt::format(": {}", reason);
  }
  return cause;
}

Cause from_deadline(const View& view, std::size_t i) {
  const trace::Event& e = view.event(i);
  Cause cause;
  cause.kind = Cause::Kind::kDeadline;
  cause.type = std::string(text(e, "kind"));
  cause.message = cause.type == "silence" ? "no event and no output any more"
                                          : "the phase did not end within its deadline";
  return cause;
}

// The phase of a process's end is the last its rank was in; the event itself comes from outside.
std::string phase_of(const View& view, std::size_t i) {
  const std::string_view named = view.phase(i);
  if (!named.empty()) return std::string(named);
  return "";
}

}  // namespace

std::string signal_text(std::int64_t signal) {
  if (signal > 0 && signal < static_cast<std::int64_t>(std::size(kSignals)))
    return kSignals[signal];
  return fmt::format("signal {}", signal);
}

bool ended_badly(const trace::Event& e) {
  return !e.flag("killed_by_us") && (e.num("signal") != 0 || e.num("exit_code") != 0);
}

bool is_echo(const trace::Event& fault) {
  const std::string_view kind = text(fault, "kind");
  return text(fault, "type") == "CollectiveError" && (kind.empty() || kind != "mismatch");
}

bool is_writer_limit(const trace::Event& fault) {
  const std::string_view type = text(fault, "type");
  return type == "line_too_long" || type == "too_many_lines";
}

std::optional<Cause> first_cause(const View& view) {
  // An attempt that recovered is no cause: its rank began or ended a phase properly afterwards. A
  // log is of several workers, one of which may go on for a moment, and was read to its end before
  // it named a cause.
  std::map<int, std::int64_t> well;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    const bool good = e.ev == "phase_begin" || e.ev == "bye" ||
                      (e.ev == "phase_end" && text(e, "status") == "ok");
    if (good && e.src != "log") well[rank_of(e, -1)] = std::max(well[rank_of(e, -1)], e.t_ns);
  }
  std::vector<Cause> candidates;
  std::int64_t ours = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    Cause cause;
    if (e.ev == "fault") {
      const auto it = well.find(rank_of(e, -1));
      const bool recovered = e.src != "log" && it != well.end() && e.t_ns < it->second;
      if (is_writer_limit(e) || recovered) continue;
      cause = from_fault(view, i);
    } else if (e.ev == "process_end" && ended_badly(e)) {
      cause = from_process(view, i);
    } else if (e.ev == "phase_end" && text(e, "status") != "ok") {
      cause = from_phase(view, i);
    } else if (e.ev == "deadline") {
      ours = std::min(ours, e.t_ns);
      cause = from_deadline(view, i);
    } else {
      continue;
    }
    cause.rank = e.rank && *e.rank >= 0 ? *e.rank : -1;
    cause.event = i;
    cause.t_ns = e.t_ns;
    cause.phase = phase_of(view, i);
    candidates.push_back(std::move(cause));
  }
  // What happens after the harness sent its first signal is a consequence of it.
  std::erase_if(candidates,
                [&](const Cause& c) { return c.kind != Cause::Kind::kDeadline && c.t_ns > ours; });
  if (candidates.empty()) return std::nullopt;

  // A rank that spoke of its own fault names itself best: its phase_end and process_end only
  // repeat it. A rank whose only words are about a lost peer is no cause while another exists.
  const auto echo_rank = [&](int rank) {
    bool echo = false;
    for (const Cause& c : candidates) {
      if (c.rank != rank || c.kind != Cause::Kind::kFault) continue;
      if (!c.echo) return false;
      echo = true;
    }
    return echo;
  };
  const auto weight = [&](const Cause& c) {
    if (c.kind == Cause::Kind::kDeadline) return 2;
    return c.rank >= 0 && echo_rank(c.rank) ? 1 : 0;
  };
  const auto first =
      std::min_element(candidates.begin(), candidates.end(), [&](const Cause& a, const Cause& b) {
        const int wa = weight(a), wb = weight(b);
        return wa != wb ? wa < wb : a.t_ns < b.t_ns;
      });
  Cause chosen = *first;
  chosen.echo = weight(*first) == 1;
  // The fault of that rank, if it wrote one, says more than its phase's or its process's end.
  if (chosen.kind == Cause::Kind::kPhase || chosen.kind == Cause::Kind::kProcess) {
    for (const Cause& c : candidates) {
      if (c.kind == Cause::Kind::kFault && c.rank == chosen.rank && chosen.rank >= 0 &&
          c.echo == chosen.echo) {
        chosen = c;
        break;
      }
    }
  }
  return chosen;
}

}  // namespace warmgate::contract
