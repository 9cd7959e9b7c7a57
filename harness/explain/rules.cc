// What a line that a grammar knows brings: a phase, figures, something to name.
#include <cxxabi.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "harness/explain/session.h"

namespace warmgate::explain::internal {
namespace {

constexpr std::int64_t kDetailWithin = 30;     // lines after the failure that it completes
constexpr std::int64_t kSurvivedWithin = 300;  // lines before "retrying"

bool is_failure(Sort sort) {
  return sort == Sort::kCause || sort == Sort::kEcho || sort == Sort::kVictim ||
         sort == Sort::kHang || sort == Sort::kOutside;
}

// `_Z24ggml_cuda_flash_attn_extR…` is ggml_cuda_flash_attn_ext.
std::string demangled(std::string_view name) {
  if (!name.starts_with("_Z") || name.size() > 1000) return std::string(name);
  int status = 0;
  char* text = abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status);
  if (!text) return std::string(name);
  std::string out(text);
  std::free(text);
  return out.substr(0, out.find('('));
}

int small_number(std::string_view text) {
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

void ReaderImpl::enter(Source& source, const std::string& phase, const When& when, int worker,
                       bool follows) {
  // A server that starts again is not ready yet.
  if (!follows && phase == "bootstrap" && source.ready) {
    source.ready = source.served = source.shut = false;
  }
  Worker& who = workers_[worker];
  if (follows) {
    source.timeline.follow(phase, who.span, when);
    who.span = source.timeline.current();
  } else {
    who.span = source.timeline.place(phase, who.span, when);
  }
  // A phase is told to begin with its first line, not because another has ended.
  const std::string& now = source.timeline.phase();
  if (now == source.told_phase) return;
  if (!source.told_phase.empty()) {
    say(source, Said::What::kPhaseEnd, when, worker, source.told_phase, nullptr, "");
    source.told_phase.clear();
  }
  if (!source.timeline.entered()) return;
  source.told_phase = now;
  say(source, Said::What::kPhaseBegin, when, worker, now, nullptr, "");
}

void ReaderImpl::take_special(Source& source, const std::string& special, std::string_view value,
                              int& worker, Failure& failure) {
  if (special == "version") {
    if (!version_) version_ = shown(value, 60);
  } else if (special == "worker") {
    worker = workers_.named(value, source.index);
  } else if (special == "rank") {
    const int rank = small_number(value);
    if (rank >= 0) workers_[worker].printed_rank = rank;
  } else if (special == "tp") {
    workers_.set_tp(small_number(value));
  } else if (special == "function") {
    failure.function = shown(demangled(value), 120);
  } else if (special == "file") {
    const std::size_t slash = value.rfind('/');
    failure.file = shown(slash == std::string_view::npos ? value : value.substr(slash + 1), 120);
  } else if (special == "type") {
    failure.type = shown_masked(value, 120);
  } else if (special == "message") {
    failure.message = shown_masked(value, 2000);
  } else if (special == "step" || special == "kernel") {
    failure.text = shown_masked(value, 200);
  }
}

void ReaderImpl::take_values(Source& source, const LineRule& rule, int number, const Line& line,
                             const When& when, int& worker, Failure& failure) {
  const Grammar& rules = grammar(source);
  FigureStore& figures = figures_[source.grammar];
  for (const std::string& name : rule.resets) figures.reset(rules.figure(name));
  const auto take = [&](int figure, nlohmann::json value) {
    figures.take(rules, figure, worker, workers_[worker].span, value);
    if (!said_) return;
    say(source, Said::What::kFigure, when, worker,
        rules.figures[static_cast<std::size_t>(figure)].name, std::move(value), line.message);
  };
  if (!rule.takes.empty() && rules.patterns.capture(number, line.message, groups_)) {
    const std::vector<std::string_view> groups = groups_;
    for (const LineRule::Take& one : rule.takes) {
      const std::string_view value = groups[static_cast<std::size_t>(one.group)];
      if (value.data() == nullptr || one.figure >= 0) continue;
      take_special(source, one.special, value, worker, failure);
    }
    for (const LineRule::Take& one : rule.takes) {
      const std::string_view value = groups[static_cast<std::size_t>(one.group)];
      if (value.data() != nullptr && one.figure >= 0) take(one.figure, printed_value(value));
    }
  }
  if (!rule.clock.empty() && !line.clock.empty()) {
    take(rules.figure(rule.clock), shown(line.clock, 16));
  }
  if (!rule.since.empty() && line.form == Form::kLlama) {
    take(rules.figure(rule.since), line.inner_s);
  }
  if (!rule.count.empty()) take(rules.figure(rule.count), line.repeated);
  if (!rule.interval.empty()) interval(source, rule, when, worker);
}

void ReaderImpl::interval(Source& source, const LineRule& rule, const When& when, int worker) {
  if (!has_time(when.inner_s) && !has_time(when.outer_s)) return;
  const std::string key = rule.interval + "/" + std::to_string(worker);
  if (rule.interval_begins) {
    if (source.intervals.size() < Workers::kMost) source.intervals[key] = when;
    return;
  }
  const auto it = source.intervals.find(key);
  if (it == source.intervals.end()) return;
  const double seconds = seconds_between(it->second, when);
  if (!has_time(seconds) || seconds < 0) return;
  const Grammar& rules = grammar(source);
  figures_[source.grammar].take(rules, rules.figure(rule.interval), worker, workers_[worker].span,
                                seconds);
  source.intervals.erase(it);
}

void ReaderImpl::bar(Source& source, const LineRule& rule, const Line& line, const When& when) {
  Bar drawn;
  if (!read_bar(line.message, drawn)) return;
  BarState& state = source.bars[rule.bar];
  const bool moved = drawn.done != state.done || drawn.total != state.total;
  state = {drawn.done, drawn.total, when.line};
  if (!moved) return;
  live(source, when, workers_.of(line, source.index), line.message);
  if (!said_) return;
  say(source, Said::What::kProgress, when, workers_.of(line, source.index), rule.bar + "_done",
      {{"value", drawn.done}, {"of", drawn.total}}, line.message);
}

void ReaderImpl::detail(Source& source, const LineRule& rule, const When& when, int worker,
                        const Failure& found) {
  const int index = failures_.latest(source.index, when.line - kDetailWithin);
  if (index < 0) return;
  Failure& failure = failures_[index];
  if (failure.function.empty()) failure.function = found.function;
  if (failure.file.empty()) failure.file = found.file;
  if (failure.type.empty()) failure.type = found.type;
  if (failure.phase.empty()) failure.phase = rule.in;
  if (workers_[failure.worker].label.empty()) failure.worker = worker;
}

void ReaderImpl::become_ready(Source& source, const When& when, int worker, const Line& line) {
  const bool again = source.ready;
  source.ready = true;
  if (again) return;
  // Whatever failed before: the engine came up all the same.
  for (Failure& failure : failures_.all()) {
    if (failure.source != source.index || failure.recovered) continue;
    failure.recovered = true;
    if (failure.sort == Sort::kCause) {
      moment(source, Sort::kSwallowed, failure.name, failure.when, failure.worker, failure.text);
    }
  }
  say(source, Said::What::kReady, when, worker, "ready", nullptr, line.message);
}

// All patterns that fitted (found_). What a line says of a failure outweighs what it says of a
// phase.
void ReaderImpl::apply_all(Source& source, const Line& line, const When& when, int worker,
                           int traced, bool may_lead) {
  const auto& lines = grammar(source).lines;
  int lead = -1;
  for (const int number : found_) {
    const Sort sort = lines[static_cast<std::size_t>(number)].sort;
    if (sort == Sort::kNone) continue;
    const bool failure = is_failure(sort) || sort == Sort::kDetail || sort == Sort::kSurvived;
    if (lead < 0 || failure) lead = number;
    if (failure) break;
  }
  std::swap(found_, applying_);
  for (const int number : applying_) {
    apply(source, number, line, when, worker, may_lead && (number == lead || lead < 0), traced);
  }
}

// `leads`: the first of the line's patterns that says what sort of line it is decides. `traced`:
// the failure whose exception this line is, -1 = none.
void ReaderImpl::apply(Source& source, int number, const Line& line, const When& when, int worker,
                       bool leads, int traced) {
  const LineRule& rule = grammar(source).lines[static_cast<std::size_t>(number)];
  const bool failing = is_failure(rule.sort) || rule.sort == Sort::kDetail;
  if (!failing && !rule.in.empty() && leads) enter(source, rule.in, when, worker, false);
  if (rule.sort == Sort::kProgress) {
    auto& seen = workers_[worker].seen;
    if (seen.size() <= static_cast<std::size_t>(number))
      seen.resize(static_cast<std::size_t>(number) + 1);
    ++seen[static_cast<std::size_t>(number)];
    if (line.repeated > 1)
      source.repeats[static_cast<std::size_t>(number)] +=
          static_cast<std::uint32_t>(line.repeated - 1);
  }
  if (failing || rule.names) failure_ = Failure{};
  int who = worker;
  take_values(source, rule, number, line, when, who, failure_);
  if (!rule.bar.empty()) bar(source, rule, line, when);
  if (leads) sorted(source, rule, line, when, who, failure_, traced);
  if (rule.ready) become_ready(source, when, who, line);
  if (!failing && !rule.then.empty() && leads) enter(source, rule.then, when, worker, true);
}

void ReaderImpl::sorted(Source& source, const LineRule& rule, const Line& line, const When& when,
                        int worker, Failure& failure, int traced) {
  if (is_failure(rule.sort)) {
    if (traced >= 0) {  // the exception says what sort of failure this was
      Failure& known = failures_[traced];
      known.sort = rule.sort;
      known.name = rule.name;
      known.without = rule.without;
      if (known.phase.empty()) known.phase = rule.in;
      return;
    }
    failure.sort = rule.sort;
    failure.name = rule.name;
    failure.phase = rule.in;
    failure.without = rule.without;
    if (failure.type.empty()) failure.type = rule.type;
    fail(source, std::move(failure), line, when, worker);
    return;
  }
  switch (rule.sort) {
    case Sort::kDetail:
      return detail(source, rule, when, worker, failure);
    case Sort::kSurvived:
      failures_.recover(source.index, when.line - kSurvivedWithin);
      moment(source, Sort::kSwallowed, rule.name, when, worker, line.message);
      return live(source, when, worker, line.message);
    case Sort::kSwallowed:
      moment(source, Sort::kSwallowed, rule.name, when, worker, line.message);
      return live(source, when, worker, line.message);
    case Sort::kSkip:
      moment(source, Sort::kSkip, rule.name, when, worker, line.message);
      say(source, Said::What::kSkip, when, worker, rule.name, nullptr,
          !rule.names || failure.text.empty() ? line.message : std::string_view(failure.text));
      return live(source, when, worker, line.message);
    case Sort::kCompile:
      if (source.ready) {
        moment(source, Sort::kCompile, rule.name, when, worker, line.message);
        say(source, Said::What::kCompile, when, worker, rule.name, nullptr,
            !rule.names || failure.text.empty() ? line.message : std::string_view(failure.text));
      }
      return live(source, when, worker, line.message);
    case Sort::kServing:
      if (source.ready && !source.served) {
        source.served = true;
        enter(source, "serve", when, worker, false);
      }
      return live(source, when, worker, line.message);
    case Sort::kShutdown:
      if (source.ready) enter(source, "shutdown", when, worker, false);
      source.shut = true;
      return live(source, when, worker, line.message);
    case Sort::kNoise:
      return moment(source, Sort::kNoise, rule.name, when, worker, line.message);
    case Sort::kWaiting:
      return moment(source, Sort::kWaiting, rule.name, when, worker, line.message);
    default:
      break;
  }
  if (rule.sort == Sort::kProgress && rule.bar.empty()) {
    moment(source, Sort::kProgress, rule.name, when, worker, line.message);
    if (said_) say(source, Said::What::kProgress, when, worker, rule.name, nullptr, line.message);
  }
  if (rule.bar.empty()) live(source, when, worker, line.message);
}

}  // namespace warmgate::explain::internal
