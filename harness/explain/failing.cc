// Failures while they are read: headers, tracebacks, and lines that name an exception themselves.
#include <algorithm>
#include <functional>

#include "harness/explain/session.h"

namespace warmgate::explain::internal {
namespace {

constexpr std::int64_t kHeaderWaits = 60;  // lines between "hit an exception." and its traceback

Said::What what_of(Sort sort) {
  switch (sort) {
    case Sort::kEcho:
      return Said::What::kEcho;
    case Sort::kVictim:
      return Said::What::kVictim;
    case Sort::kOutside:
      return Said::What::kOutside;
    case Sort::kHang:
      return Said::What::kHang;
    default:
      return Said::What::kCause;
  }
}

}  // namespace

int ReaderImpl::fail(Source& source, Failure failure, const Line& line, const When& when,
                     int worker) {
  // Who printed the line need not be whom it names.
  const int speaker = workers_.of(line, source.index);
  if (failure.sort == Sort::kEcho && worker != speaker) {
    // "Shard 0 failed to start": the failure before it named nobody.
    for (Failure& open : failures_.all()) {
      const bool nobody = workers_[open.worker].label.empty();
      if (open.source == source.index && open.sort == Sort::kCause && nobody) open.worker = worker;
    }
  }
  // A header without its exception so far, by the same process: this is it.
  const auto header = source.headers.find(speaker);
  Exception exception;
  const bool names = read_exception(line.message, exception);
  if (header != source.headers.end() && names && when.line - header->second.line < kHeaderWaits) {
    Failure& open = failures_[header->second.failure];
    if (!open.traced && open.type.empty() && open.when.line != when.line) {
      open.type = shown_masked(exception.type, 120);
      open.message = shown_masked(exception.message, 2000);
      if (failure.sort != Sort::kCause) open.sort = failure.sort;
      if (open.phase.empty()) open.phase = failure.phase;
      return header->second.failure;
    }
  }
  // The same fault in other words: Python tells a segmentation fault that a library told already.
  if (const int index = failures_.latest(source.index, when.line - kHeaderWaits);
      index >= 0 && failure.sort == Sort::kCause && !failure.type.empty()) {
    Failure& other = failures_[index];
    const bool same = other.name == failure.name && other.type == failure.type &&
                      other.worker == worker && !other.traced;
    if (same && (other.message.empty() || failure.message.empty())) {
      if (other.message.empty()) other.message = failure.message;
      return index;
    }
  }
  failure.source = source.index;
  failure.worker = worker;
  failure.when = when;
  failure.t_ns = source.t_ns;
  failure.text = shown_masked(line.message);
  if (failure.type.empty() && names) {
    failure.type = shown_masked(exception.type, 120);
    failure.message = shown_masked(exception.message, 2000);
  }
  const int span = workers_[worker].span;
  // Where ranks speak for themselves, each is where its own last line stands; until it serves.
  const bool own =
      grammar(source).every_rank_speaks && span >= 0 && !source.timeline.empty() && !source.ready;
  failure.at_phase = own ? source.timeline[std::min(span, source.timeline.current())].phase
                         : source.timeline.phase();
  // What is ready stands still over work that it was given.
  if (source.ready && failure.sort == Sort::kHang && failure.at_phase == "ready")
    failure.at_phase = "serve";
  failure.silence_s = seconds_between(source.alive, when);
  failure.silent_since = source.alive.line;
  // A traceback's failure is told when it is whole.
  const bool certain = !failure.type.empty() && failure.name != "traceback";
  workers_[worker].suffers = workers_[worker].suffers || failure.sort == Sort::kCause;
  const int index = failures_.add(std::move(failure));
  if (index < 0) return index;
  source.suffers = true;
  if (certain) {
    if (failures_.told_before(index)) failures_[index].sort = Sort::kEcho;
    tell_failure(index);
  } else if (failures_[index].name != "traceback" && source.headers.size() < Workers::kMost) {
    source.headers[speaker] = {index, when.line};
  }
  return index;
}

void ReaderImpl::tell_failure(int index) {
  Failure& failure = failures_[index];
  if (failure.said) return;
  failure.said = true;
  Source& source = *sources_[static_cast<std::size_t>(failure.source)];
  moment(source, failure.sort, failure.name, failure.when, failure.worker,
         failure.type.empty()
             ? failure.text
             : failure.type + (failure.message.empty() ? "" : ": " + failure.message));
  Said said;
  if (!said_) return;
  said.what = what_of(failure.sort);
  said.source = failure.source;
  said.line = failure.when.line;
  said.phase = failure.phase.empty() ? failure.at_phase : failure.phase;
  said.name = failure.name;
  said.value = fingerprint_type(failure, grammar(source));
  said.worker = workers_[failure.worker].label;
  said.rank = workers_.rank(failure.worker);
  said.text = failure.message.empty() ? failure.text : failure.type + ": " + failure.message;
  said.t_ns = failure.t_ns;
  said_(said);
}

void ReaderImpl::tell_open_failures() {
  for (std::size_t i = 0; i < failures_.all().size(); ++i) {
    if (!failures_.all()[i].recovered) tell_failure(static_cast<int>(i));
  }
}

bool ReaderImpl::traceback(Source& source, const Line& line, const When& when, int worker) {
  const bool may_begin = line.message.back() == ':';
  if (source.traces.idle() && !may_begin) return false;
  const std::uint64_t key =
      (static_cast<std::uint64_t>(worker) << 40) ^ (std::hash<std::string_view>()(line.tag) >> 24);
  const Tracebacks::Result part = source.traces.read(line.message, key, when.line);
  switch (part.part) {
    case Tracebacks::Part::kNone:
      return false;
    case Tracebacks::Part::kFrame:
      if (const auto it = source.trace_failures.find(key);
          part.newest_first && it != source.trace_failures.end() && it->second >= 0) {
        failures_.attach(it->second, {}, *part.frames, true, grammar(source));
      }
      [[fallthrough]];
    case Tracebacks::Part::kChain:
      count(source, Tally::kPlaced, when.line);
      return true;
    case Tracebacks::Part::kEnd:
      end_traceback(source, line, when, worker, key, part);
      count(source, Tally::kPlaced, when.line);
      return true;
    case Tracebacks::Part::kBegin:
      break;
  }
  count(source, Tally::kPlaced, when.line);
  // What stands before it in the same line: "Scheduler hit an exception: Traceback …".
  grammar(source).patterns.match(line.message, found_);
  apply_all(source, line, when, worker, -1, true);
  if (part.chained) return true;
  // The traceback belongs to the header that this process printed, or, where lines have no prefix,
  // to the header just before.
  int owner = -1;
  const auto fresh = [&](const Source::Header& header) {
    return when.line - header.line < kHeaderWaits && !failures_[header.failure].traced;
  };
  if (const auto it = source.headers.find(worker);
      it != source.headers.end() && fresh(it->second)) {
    owner = it->second.failure;
  } else if (line.form == Form::kNone && line.depth == 0) {
    for (const auto& [who, header] : source.headers) {
      const bool newer = owner < 0 || failures_[owner].when.line < header.line;
      if (when.line - header.line <= 3 && fresh(header) && newer) owner = header.failure;
    }
  }
  // A stack that is dumped belongs to the fault that was told just before.
  if (owner < 0 && line.message.ends_with("first):")) {
    owner = failures_.latest(source.index, when.line - kHeaderWaits);
    // Of all threads the one that fell is told last.
    const bool current = line.message.find("Current thread ") != std::string_view::npos;
    if (owner >= 0 && failures_[owner].traced && !(current && failures_[owner].stack)) owner = -1;
    if (owner >= 0) failures_[owner].stack = true;
  }
  if (source.trace_failures.size() > 512) source.trace_failures.clear();
  source.trace_failures[key] = owner;
  // Lines that follow without any prefix belong to it as well.
  if (line.form != Form::kNone || line.depth > 0) {
    const bool bare_follows = line.form == Form::kSglang || line.form == Form::kSglangRank ||
                              line.form == Form::kTgi || line.form == Form::kTrt ||
                              line.form == Form::kTrtCpp || line.form == Form::kLmdeploy ||
                              line.form == Form::kPython;
    if (bare_follows) {
      Line bare;
      const int nobody = workers_.of(bare, source.index);
      const std::uint64_t bare_key = (static_cast<std::uint64_t>(nobody) << 40) ^
                                     (std::hash<std::string_view>()(bare.tag) >> 24);
      source.traces.read("Traceback (most recent call last):", bare_key, when.line);
      source.trace_failures[bare_key] = owner;
    }
  }
  return true;
}

void ReaderImpl::end_traceback(Source& source, const Line& line, const When& when, int worker,
                               std::uint64_t key, const Tracebacks::Result& result) {
  const Grammar& rules = grammar(source);
  const auto known = source.trace_failures.find(key);
  int owner = known == source.trace_failures.end() ? -1 : known->second;
  const bool chained = result.chained && owner >= 0;
  if (owner < 0) {
    Failure failure;
    failure.name = "traceback";
    owner = fail(source, std::move(failure), line, when, worker);
    if (owner < 0) return;
    if (known != source.trace_failures.end()) known->second = owner;
  }
  if (!chained) {
    failures_.attach(owner, result.exception, *result.frames, false, rules);
    source.headers.erase(worker);
    source.headers.erase(failures_[owner].worker);
  }
  rules.patterns.match(line.message, found_);
  apply_all(source, line, when, worker, owner, !chained);
  if (chained) return;
  if (failures_.told_before(owner) && failures_[owner].sort == Sort::kCause) {
    failures_[owner].sort = Sort::kEcho;
  }
  tell_failure(owner);
}

}  // namespace warmgate::explain::internal
