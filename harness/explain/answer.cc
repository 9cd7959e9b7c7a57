#include "harness/explain/answer.h"

#include <fmt/format.h>

#include <algorithm>

namespace warmgate::explain {
namespace {

std::string where_of(const Reading& reading) {
  std::string out;
  if (reading.failing_phase) {
    out += " in " + *reading.failing_phase;
  } else if (!reading.last_phase.empty()) {
    out += " in " + reading.last_phase;
  }
  if (reading.failing_worker) out += " on " + *reading.failing_worker;
  return out;
}

bool has_cause(const Reading& reading) {
  return std::any_of(reading.moments.begin(), reading.moments.end(),
                     [](const Moment& moment) { return moment.sort == "cause"; });
}

std::string root_of(const Reading& reading) {
  if (!reading.fingerprint || reading.fingerprint->type.empty()) return "";
  const Fingerprint& root = *reading.fingerprint;
  std::string out = root.type;
  if (!root.function.empty()) out += fmt::format(" in {}", root.function);
  if (!root.file.empty()) out += fmt::format(" ({})", root.file);
  return out;
}

std::string known_reason(const KnownMatch& match) {
  const Known& known = *match.known;
  std::string out = known.about;
  if (!known.issue.empty()) out += fmt::format(" {};", known.issue);
  if (!known.fix.empty()) {
    out += fmt::format(" fixed by {}", known.fix);
    if (!known.fixed_in.empty()) out += fmt::format(" in {}", known.fixed_in);
  } else if (!known.proposed.empty()) {
    out += fmt::format(" proposed fix {}", known.proposed);
  } else {
    out += " no fix is known";
  }
  return out;
}

}  // namespace

std::string_view to_string(Answer::Kind kind) {
  switch (kind) {
    case Answer::Kind::kStarts:
      return "starts";
    case Answer::Kind::kMine:
      return "mine";
    case Answer::Kind::kInfrastructure:
      return "infrastructure";
    case Answer::Kind::kKnown:
      return "known";
    case Answer::Kind::kUnclear:
      return "unclear";
    case Answer::Kind::kIncomplete:
      return "incomplete";
  }
  return "?";
}

Symptom symptom_of(const Reading& reading) {
  Symptom out;
  out.engine = reading.engine;
  out.version = reading.version;
  out.outcome = reading.outcome;
  out.phase = reading.failing_phase.value_or(reading.last_phase);
  if (reading.fingerprint) {
    out.type = reading.fingerprint->type;
    out.function = reading.fingerprint->function;
    out.file = reading.fingerprint->file;
  }
  if (!reading.message.empty()) out.said.push_back(reading.message);
  for (const Moment& moment : reading.moments) {
    const bool fault = moment.sort == "cause" || moment.sort == "hang";
    const bool left_out = moment.sort == "skip" || moment.sort == "swallowed" ||
                          moment.sort == "compile" || moment.sort == "noise";
    if (fault || (left_out && reading.outcome == "passed")) out.said.push_back(moment.text);
  }
  // What stands still, or just ends, has no exception: what it said last may still be known.
  if (!reading.fingerprint || reading.outcome == "hung" || reading.outcome == "passed") {
    for (const UnplacedLine& line : reading.unplaced_lines) out.said.push_back(line.text);
  }
  return out;
}

Answer answer_of(const Reading& reading, const Ending& ending, const OutsideRules& rules,
                 const KnownSet& known) {
  Answer out;
  out.outside = rules.find(reading, ending);
  const bool failed = reading.outcome != "incomplete";
  if (failed) out.known = known.match(symptom_of(reading));
  if (reading.outcome == "passed") {
    out.kind = Answer::Kind::kStarts;
    out.reason = "ready was said, and nothing failed";
    if (!out.known.empty())
      out.reason += ", but a known fault shows: " + known_reason(out.known.front());
    return out;
  }
  const auto first = std::find_if(out.outside.begin(), out.outside.end(),
                                  [](const OutsideCause& cause) { return !cause.after_failure; });
  const OutsideCause* outside = first == out.outside.end() ? nullptr : &*first;
  // A known regression is the better answer to what the root exception says; what struck from
  // outside before any exception is the better answer to everything after it.
  const bool struck = outside && outside->rule->certain && !outside->is_root;
  if (!out.known.empty() && !struck) {
    out.kind = Answer::Kind::kKnown;
    out.certain = out.known.front().version_seen;
    out.reason = known_reason(out.known.front());
  } else if (outside) {
    out.kind = Answer::Kind::kInfrastructure;
    out.certain = outside->rule->certain;
    out.reason = outside->rule->reason;
  } else if (!failed) {
    out.kind = Answer::Kind::kIncomplete;
    out.certain = false;
    out.reason = fmt::format("the log ends{}, and nothing has failed in it", where_of(reading));
  } else if (reading.outcome == "crashed" && !has_cause(reading) && reading.failing_worker) {
    out.kind = Answer::Kind::kUnclear;
    out.certain = false;
    out.reason = fmt::format("{} fell{} without a word; what others say is that they lost it",
                             *reading.failing_worker,
                             reading.failing_phase ? " in " + *reading.failing_phase : "");
  } else if (reading.outcome == "crashed" && reading.fingerprint) {
    out.kind = Answer::Kind::kMine;
    out.reason = fmt::format("{}{}: {}; no cause outside, no known regression", reading.outcome,
                             where_of(reading), root_of(reading));
  } else if (reading.outcome == "hung") {
    out.kind = Answer::Kind::kUnclear;
    out.certain = false;
    out.reason = fmt::format(
        "stands still{}{}; no cause outside is in the log", where_of(reading),
        reading.silence ? fmt::format(" for {:.0f} s", reading.silence->seconds) : std::string());
  } else {
    out.kind = Answer::Kind::kUnclear;
    out.certain = false;
    out.reason = fmt::format("{}{} without a word why", reading.outcome, where_of(reading));
  }
  return out;
}

}  // namespace warmgate::explain
