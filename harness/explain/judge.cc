// What the lines amount to: outcome, the first worker that failed, the root of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/explain/session.h"

namespace warmgate::explain::internal {

const Source* ReaderImpl::main_source() const {
  const Source* best = nullptr;
  for (const auto& source : sources_) {
    if (!best || (source->known && !best->known) ||
        (source->known == best->known && source->placed > best->placed)) {
      best = source.get();
    }
  }
  return best;
}

std::vector<Behind> ReaderImpl::behind(const Source& source, const std::string& milestone) const {
  const Grammar& rules = grammar(source);
  std::vector<int> ranked;
  bool tp_labels = true;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const int index = static_cast<int>(i);
    if (workers_[index].label.empty() || !workers_.rank(index)) continue;
    // c10d's own rank0 prints no milestones: it is no worker of its own.
    if (!rules.every_rank_speaks && workers_[index].seen.empty()) continue;
    ranked.push_back(index);
    tp_labels = tp_labels && workers_[index].label == fmt::format("TP{}", *workers_.rank(index));
  }
  // Lines of one name are one milestone, however the release words them.
  std::map<std::string, std::vector<std::size_t>> milestones;
  for (std::size_t i = 0; i < rules.lines.size(); ++i) {
    const LineRule& rule = rules.lines[i];
    if (milestone.empty() ? rule.every_rank : rule.name == milestone)
      milestones[rule.name].push_back(i);
  }
  std::vector<int> best;
  for (const auto& [name, numbers] : milestones) {
    const auto reached = [&, &numbers = numbers](int worker) {
      std::uint32_t count = 0;
      for (const std::size_t number : numbers) count += workers_[worker].count(number);
      return count;
    };
    std::uint32_t most = 0;
    std::size_t speakers = 0;
    for (const int worker : ranked) {
      most = std::max(most, reached(worker));
      speakers += reached(worker) > 0;
    }
    // In some releases only the first rank prints what in others every rank does.
    if (most == 0 || (!rules.every_rank_speaks && speakers < 2)) continue;
    std::vector<int> lacking;
    for (const int worker : ranked) {
      if (reached(worker) < most) lacking.push_back(worker);
    }
    // A Ray cluster does not say who the others were that said the same.
    std::size_t unnamed = 0;
    for (const std::size_t number : numbers) {
      const auto it = source.repeats.find(number);
      if (it != source.repeats.end()) unnamed += it->second;
    }
    if (lacking.size() <= unnamed) continue;
    if (!lacking.empty() && (best.empty() || lacking.size() < best.size())) best = lacking;
  }
  std::vector<Behind> out;
  for (const int worker : best) {
    if (out.size() >= 64) break;
    const Worker& who = workers_[worker];
    const Source& its = *sources_[static_cast<std::size_t>(who.source)];
    const bool placed = who.span >= 0 && !its.timeline.empty();
    out.push_back({who.label, workers_.rank(worker),
                   placed ? its.timeline[std::min(who.span, its.timeline.current())].phase : ""});
  }
  // A rank that never spoke at all.
  if (tp_labels && !ranked.empty() && rules.every_rank_speaks && out.empty()) {
    for (int rank = 0; rank < std::min(workers_.tp(), 64); ++rank) {
      const auto spoke = [&](int worker) { return workers_.rank(worker) == rank; };
      if (std::none_of(ranked.begin(), ranked.end(), spoke)) {
        out.push_back({fmt::format("TP{}", rank), rank, ""});
      }
    }
  }
  return out;
}

std::optional<Silence> ReaderImpl::silence() const {
  // The source that spoke last says when the others would have had to speak.
  const Source* last = nullptr;
  const Source* alive = nullptr;
  const auto later = [](const When& a, std::int64_t a_ns, const When& b, std::int64_t b_ns) {
    if (a_ns >= 0 && b_ns >= 0) return b_ns > a_ns;
    const double gap = seconds_between(a, b);
    return has_time(gap) && gap > 0;
  };
  for (const auto& source : sources_) {
    if (source->last.line == 0) continue;
    if (!last || later(last->last, last->last_t_ns, source->last, source->last_t_ns))
      last = source.get();
    if (source->alive.line == 0) continue;
    if (!alive || later(alive->alive, alive->alive_t_ns, source->alive, source->alive_t_ns)) {
      alive = source.get();
    }
  }
  if (!last || !alive) return std::nullopt;
  double seconds = seconds_between(alive->alive, last->last);
  if (!has_time(seconds) && alive->alive_t_ns >= 0 && last->last_t_ns >= 0) {
    seconds = static_cast<double>(last->last_t_ns - alive->alive_t_ns) * 1e-9;
  }
  if (!has_time(seconds) || seconds <= 0) return std::nullopt;
  Silence out;
  out.seconds = seconds;
  out.since_line = alive->alive.line;
  out.source = alive->index;
  // It was cut somewhere: what may be half a secret is known no longer.
  std::string said = alive->alive_text;
  if (said.size() >= 300) said.resize(std::min(said.find_last_of(" \t"), said.size()));
  out.last_text = shown_masked(said);
  out.last_worker = workers_[alive->alive_worker].label;
  return out;
}

namespace {

nlohmann::json seconds_figure(double seconds) {
  const double rounded = std::round(seconds * 1e3) / 1e3;
  if (rounded == std::floor(rounded)) return static_cast<std::int64_t>(rounded);
  return rounded;
}

}  // namespace

void ReaderImpl::judge_failure(Reading& out, const Failure& failure, const Source& source) const {
  const Grammar& rules = grammar(source);
  Fingerprint print;
  print.type = fingerprint_type(failure, rules);
  print.function = failure.function;
  print.file = failure.file;
  out.fingerprint = print;
  for (const auto& [function, file] : failure.frames) out.frames.push_back({"", function, file});
  out.message = failure.message.empty() ? failure.text : failure.message;
  out.failing_phase = failure.phase.empty() ? failure.at_phase : failure.phase;
  const auto name = [&](const std::string& label, std::optional<int> rank) {
    if (!label.empty()) out.failing_worker = label;
    out.failing_rank = rank;
  };
  if (!failure.without.empty()) {
    const std::vector<Behind> culprits = behind(source, failure.without);
    if (!culprits.empty()) {
      name(culprits.front().label, culprits.front().rank);
      for (const Behind& culprit : culprits) out.failing_workers.push_back(culprit.label);
      if (failure.phase.empty() && !culprits.front().phase.empty()) {
        out.failing_phase = culprits.front().phase;
      }
    }
    if (has_time(failure.silence_s) && failure.silence_s > 0) {
      out.figures["silent_seconds"] = seconds_figure(failure.silence_s);
    }
  } else if (failure.sort == Sort::kVictim) {
    // It waited for somebody: for whom, only milestones can tell.
    for (const Behind& culprit : behind(source, "")) {
      if (out.failing_workers.empty()) name(culprit.label, culprit.rank);
      out.failing_workers.push_back(culprit.label);
    }
  } else {
    name(workers_[failure.worker].label, workers_.rank(failure.worker));
    for (const Failure& other : failures_.all()) {
      const double gap =
          other.source == failure.source ? seconds_between(failure.when, other.when) : 0;
      const bool same_second = &other == &failure || (has_time(gap) && gap >= 0 && gap < 1);
      const std::string& label = workers_[other.worker].label;
      if (other.sort != failure.sort || other.recovered || !same_second || label.empty()) continue;
      const auto& all = out.failing_workers;
      if (std::find(all.begin(), all.end(), label) == all.end() && all.size() < 64) {
        out.failing_workers.push_back(label);
      }
    }
  }
  if (out.failing_phase && out.failing_phase->empty()) out.failing_phase = std::nullopt;
}

void ReaderImpl::judge_hang(Reading& out) const {
  out.outcome = "hung";
  if (!out.failing_phase && !out.last_phase.empty()) out.failing_phase = out.last_phase;
  if (!out.fingerprint) out.fingerprint = Fingerprint{"no progress", "", ""};
  const Source* source = main_source();
  if (!source) return;
  // Start-up's milestones say nothing of who hangs in service.
  const std::vector<Behind> culprits = source->ready ? std::vector<Behind>{} : behind(*source, "");
  out.failing_worker = std::nullopt;
  out.failing_rank = std::nullopt;
  out.failing_workers.clear();
  for (const Behind& culprit : culprits) {
    out.failing_workers.push_back(culprit.label);
    if (out.silence) out.silence->missing.push_back(culprit.label);
  }
  if (culprits.empty()) return;
  out.failing_worker = culprits.front().label;
  out.failing_rank = culprits.front().rank;
  if (!culprits.front().phase.empty()) out.failing_phase = culprits.front().phase;
}

// Nothing in the log failed: how did it end?
void ReaderImpl::judge_outside(Reading& out, const Source& source, const Ending& ending) const {
  const bool done = source.ready && (ending.asked || source.shut);
  if (const int index = failures_.first(Sort::kOutside); index >= 0 && !done) {
    const Failure& failure = failures_.all()[static_cast<std::size_t>(index)];
    out.outcome = "crashed";
    return judge_failure(out, failure, *sources_[static_cast<std::size_t>(failure.source)]);
  }
  const bool bad_exit = ending.signal || (ending.exit_code && *ending.exit_code != 0);
  if (bad_exit && !ending.deadline && !done) {
    out.outcome = "crashed";
    out.fingerprint = Fingerprint{ending.signal ? fmt::format("signal {}", *ending.signal)
                                                : fmt::format("exit code {}", *ending.exit_code),
                                  "", ""};
    if (!out.last_phase.empty()) out.failing_phase = out.last_phase;
    return;
  }
  if (source.ready || source.served) {
    out.outcome = "passed";
    return;
  }
  const double patience = grammar(source).patience(out.last_phase);
  if (ending.deadline || (out.silence && out.silence->seconds >= patience)) {
    judge_hang(out);
    if (out.silence) out.figures["silent_seconds"] = seconds_figure(out.silence->seconds);
    return;
  }
  out.outcome = ending.exit_code == 0 ? "failed" : "incomplete";
}

void ReaderImpl::judge_outcome(Reading& out, const Source& source, const Ending& ending) const {
  for (const Sort sort : {Sort::kCause, Sort::kHang, Sort::kVictim, Sort::kEcho}) {
    const int index = failures_.first(sort);
    if (index < 0) continue;
    const Failure& failure = failures_.all()[static_cast<std::size_t>(index)];
    const Source& its = *sources_[static_cast<std::size_t>(failure.source)];
    // What was printed on the way out after an orderly end, or after somebody ended it, is not why.
    if (its.ready && (its.shut || ending.asked) && sort != Sort::kCause) continue;
    judge_failure(out, failure, its);
    out.outcome = "crashed";
    if (sort == Sort::kHang) {
      if (!out.silence && has_time(failure.silence_s) && failure.silence_s > 0) {
        Silence silence;
        silence.seconds = failure.silence_s;
        silence.since_line = failure.silent_since;
        silence.source = failure.source;
        out.silence = silence;
      }
      judge_hang(out);
    } else if (sort == Sort::kEcho) {
      out.fingerprint = std::nullopt;  // an echo is never the root
      out.frames.clear();
      out.failing_worker = std::nullopt;
      out.failing_rank = std::nullopt;
      out.failing_workers.clear();
    }
    if (out.failing_phase) out.last_phase = *out.failing_phase;
    return;
  }
  judge_outside(out, source, ending);
}

void ReaderImpl::judge_figures(Reading& out, const Source& source) const {
  std::vector<const Timeline*> timelines;
  for (const auto& one : sources_) {
    if (one->grammar == source.grammar) timelines.push_back(&one->timeline);
  }
  static const FigureStore none;
  const auto store = figures_.find(source.grammar);
  out.figures =
      (store == figures_.end() ? none : store->second).result(grammar(source), workers_, timelines);
}

Reading ReaderImpl::judge(const Ending& ending) {
  Reading out;
  out.version = version_;
  out.moments = moments_;
  for (std::size_t i = 0; i < moment_counts_.size(); ++i) {
    if (moment_counts_[i] > 0) {
      out.moment_counts[std::string(to_string(static_cast<Sort>(i)))] = moment_counts_[i];
    }
  }
  // Logs on the same scale begin with the first of them.
  std::map<std::pair<bool, Origin>, double> firsts;
  for (const auto& one : sources_) {
    const double first = one->clock.first();
    if (!has_time(first)) continue;
    const auto [it, fresh] =
        firsts.emplace(std::pair(one->clock.of_wrapper(), one->clock.origin()), first);
    if (!fresh) it->second = std::min(it->second, first);
  }
  const auto since_first = [&](const Source& one, const When& when) -> std::optional<double> {
    const double at = one.clock.at(when);
    if (!has_time(at)) return std::nullopt;
    const auto it = firsts.find(std::pair(one.clock.of_wrapper(), one.clock.origin()));
    return it == firsts.end() ? 0 : std::round((at - it->second) * 1e6) / 1e6;
  };
  for (std::size_t i = 0; i < out.moments.size(); ++i) {
    out.moments[i].at_s =
        since_first(*sources_[static_cast<std::size_t>(out.moments[i].source)], moment_whens_[i]);
  }
  out.unplaced_lines = unplaced_;
  out.workers = workers_.labels();
  out.bytes = bytes_;
  const auto tallied = [&](Tally tally) { return tallies_[static_cast<std::size_t>(tally)]; };
  out.placed = tallied(Tally::kPlaced);
  out.serving = tallied(Tally::kServing);
  out.unplaced = tallied(Tally::kUnplaced);
  for (const auto& source : sources_) {
    out.sources.push_back(source->name);
    out.source_engines.push_back(source->sure ? grammar(*source).engine : "");
    out.lines += source->splitter.lines();
    for (const Span& span : source->timeline.spans()) {
      PhaseSpan shown_span{span.phase, source->index, span.first.line, span.last.line, {}, {}};
      shown_span.begin_s = since_first(*source, span.first_timed);
      shown_span.end_s = since_first(*source, span.last_timed);
      // One stamp among several lines tells when, and not how long.
      if (span.first_timed.line == span.last_timed.line && span.first.line != span.last.line)
        shown_span.end_s.reset();
      out.phases.push_back(std::move(shown_span));
    }
  }
  out.blank = out.lines - out.placed - out.serving - out.unplaced;
  const Source* source = main_source();
  if (!source) return out;
  for (const auto& one : sources_) {
    if (one->ready && !source->ready && one->known) source = one.get();
  }
  out.engine = grammar(*source).engine;
  out.last_phase = source->timeline.phase();
  judge_figures(out, *source);
  if (const auto skips = moment_counts_[static_cast<std::size_t>(Sort::kSkip)]; skips > 0) {
    out.figures.emplace("skips", skips);
  }
  out.silence = silence();
  judge_outcome(out, *source, ending);
  if (out.outcome != "hung") out.silence.reset();
  if (out.outcome == "passed") return out;
  // How far a bar came is how far its phase came.
  for (const auto& one : sources_) {
    for (const auto& [name, bar] : one->bars) {
      if (bar.done >= bar.total) continue;
      out.figures[name + "_done"] = bar.done;
      out.figures[name + "_total"] = bar.total;
    }
  }
  return out;
}

}  // namespace warmgate::explain::internal
