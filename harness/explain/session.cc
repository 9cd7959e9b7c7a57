#include "harness/explain/session.h"

#include <functional>

#include "harness/trace/secrets.h"

namespace warmgate::explain {
namespace internal {
namespace {

// Longer messages carry their meaning in front.
constexpr std::size_t kWindow = 8 * 1024;

}  // namespace

ReaderImpl::ReaderImpl(std::shared_ptr<const GrammarSet> set, Options options)
    : set_(std::move(set)), options_(std::move(options)) {}

int ReaderImpl::add_source(std::string name) {
  auto source = std::make_unique<Source>();
  source->name = shown(name, 300);
  source->index = static_cast<int>(sources_.size());
  source->scores.assign(set_->grammars.size(), 0);
  for (std::size_t i = 0; i < set_->grammars.size(); ++i) {
    if (set_->grammars[i].engine != options_.engine) continue;
    source->grammar = static_cast<int>(i);
    source->known = source->sure = true;
  }
  sources_.push_back(std::move(source));
  return sources_.back()->index;
}

void ReaderImpl::feed(int index, std::string_view bytes, std::int64_t t_ns) {
  Source& source = *sources_.at(static_cast<std::size_t>(index));
  source.t_ns = t_ns;
  bytes_ += static_cast<std::int64_t>(bytes.size());
  source.splitter.feed(bytes, [&](std::string_view raw, std::int64_t number) {
    if (!raw.empty()) take_line(source, raw, number);
  });
}

bool ReaderImpl::serving(Source& source, std::string_view raw, std::int64_t number) {
  const auto& marks = grammar(source).serving;
  if (marks.empty() || raw.size() > 2048) return false;
  std::string_view text = raw;
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const auto fits = [&](const ServingMark& mark) {
    if (!mark.end.empty() && !text.ends_with(mark.end)) return false;
    // What is looked for stands in front: behind the prefixes, before the figures.
    return mark.text.empty() || text.substr(0, 256).find(mark.text) != std::string_view::npos;
  };
  std::size_t at = source.serving_mark < marks.size() ? source.serving_mark : 0;
  if (!fits(marks[at])) {
    for (at = 0; at < marks.size(); ++at) {
      if (at != source.serving_mark && fits(marks[at])) break;
    }
    if (at == marks.size()) return false;
    source.serving_mark = at;
  }
  count(source, Tally::kServing, number);
  ++source.serving_seen;
  ++source.placed;
  source.serving_raw.assign(raw.substr(0, 512));
  source.serving_line = number;
  source.serving_t_ns = source.t_ns;
  // A request that failed, or a traceback of one, is no end while others are served.
  if (source.suffers && source.ready && marks[at].serves) {
    source.suffers = false;
    for (Failure& failure : failures_.all()) {
      if (failure.source == source.index && failure.name == "traceback") failure.recovered = true;
    }
  }
  // Work that the engine does for itself before it is ready is not service.
  if (marks[at].serves && !source.served && (source.ready || source.timeline.empty())) {
    settle_serving(source);
    source.served = true;
    enter(source, "serve", source.last, 0, false);
  }
  return true;
}

void ReaderImpl::settle_serving(Source& source) {
  if (source.serving_line == 0) return;
  Line line;
  source.text.read(source.serving_raw, line);
  const When when = source.clock.when(line, source.serving_line, years_);
  source.serving_line = 0;
  source.last = when;
  source.last_t_ns = source.serving_t_ns;
  live(source, when, workers_.of(line, source.index), line.message);
}

void ReaderImpl::read_line(Source& source, std::string_view raw, std::int64_t number) {
  // Before ready, lines of served work are few, and looking for them first would be dear.
  const bool likely = source.ready || source.timeline.empty() || source.serving_seen > 32;
  if (likely && serving(source, raw, number)) return;
  settle_serving(source);
  const bool json = raw.back() == '}' && raw.find("{\"") != std::string_view::npos;
  for (std::size_t glued = glued_after_bar(raw); glued != std::string_view::npos && !json;
       glued = glued_after_bar(raw)) {
    read_piece(source, raw.substr(0, glued), number);
    raw.remove_prefix(glued);
  }
  read_piece(source, raw, number);
}

void ReaderImpl::read_piece(Source& source, std::string_view raw, std::int64_t number) {
  Line line;
  source.text.read(raw, line);
  const When when = source.clock.when(line, number, years_);
  source.last.line = when.line;
  if (has_time(when.inner_s) || has_time(when.outer_s)) source.last = when;
  source.last_t_ns = source.t_ns;
  if (!line.message.empty()) read_message(source, line, when);
}

// A Ray cluster prints a line again with fewer prefixes.
bool ReaderImpl::seen_before(Source& source, const Line& line, int worker) {
  // One that stands for several is no echo of one of them.
  if (line.depth == 0 || line.repeated > 1) return false;
  Source::Recent now;
  now.hash = std::hash<std::string_view>()(line.message);
  now.worker = worker;
  now.depth = line.depth;
  now.inner_s = line.inner_s;
  for (const Source::Recent& other : source.recent) {
    const bool same_time =
        other.inner_s == now.inner_s || (!has_time(other.inner_s) && !has_time(now.inner_s));
    if (other.hash == now.hash && other.worker == worker && same_time && other.depth != now.depth) {
      return true;
    }
  }
  source.recent[source.recent_at++ % source.recent.size()] = now;
  return false;
}

void ReaderImpl::read_message(Source& source, const Line& line, const When& when) {
  const int worker = workers_.of(line, source.index);
  if (seen_before(source, line, worker)) return count(source, Tally::kPlaced, when.line);
  repeated_ = line.repeated;
  if (traceback(source, line, when, worker)) return;
  const Grammar& rules = grammar(source);
  rules.patterns.match(line.message.substr(0, kWindow), found_);
  if (found_.empty()) {
    if (serving(source, line.text, when.line)) return;
    Line again = line;
    if (source.text.second_chance(line.text, {}, again) && again.message != line.message) {
      When then = source.clock.when(again, when.line, years_);
      if (!has_time(then.outer_s)) then.outer_s = when.outer_s;
      source.last = then;
      // `again` has a form or a process now, so this happens once.
      return read_message(source, again, then);
    }
    Bar drawn;  // one that no grammar names
    if (read_bar(line.message, drawn)) return count(source, Tally::kPlaced, when.line);
    return unplaced(source, when, line.text);
  }
  count(source, Tally::kPlaced, when.line);
  ++source.placed;
  apply_all(source, line, when, worker, -1, true);
}

void ReaderImpl::unplaced(Source& source, const When& when, std::string_view text) {
  count(source, Tally::kUnplaced, when.line);
  // The lines of a private key look like nothing each for itself.
  constexpr int kMostKeyLines = 200;
  const bool begins =
      text.find("-----BEGIN ") != text.npos && text.find("PRIVATE KEY") != text.npos;
  if (begins) source.key_lines = kMostKeyLines;
  const bool of_key = source.key_lines > 0;
  if (of_key) source.key_lines = text.find("-----END ") != text.npos ? 0 : source.key_lines - 1;
  if (of_key) text = trace::kMask;
  if (unplaced_.size() < kMostUnplaced) {
    unplaced_.push_back({source.index, when.line, shown_masked(text, 300)});
  }
  // Whoever says something new is alive, whatever it means.
  live(source, when, -1, text);
}

void ReaderImpl::count(Source& source, Tally as, std::int64_t line) {
  const auto of = [&](Tally tally) -> std::int64_t& {
    return tallies_[static_cast<std::size_t>(tally)];
  };
  if (source.tallied == line) {
    if (as <= source.tally) return;
    --of(source.tally);
  }
  source.tallied = line;
  source.tally = as;
  ++of(as);
}

void ReaderImpl::live(Source& source, const When& when, int worker, std::string_view text) {
  const bool timed = has_time(when.inner_s) || has_time(when.outer_s);
  if (timed || source.alive.line == 0) source.alive = when;
  source.alive.line = when.line;
  source.alive_t_ns = source.t_ns;
  if (worker < 0) return;
  source.alive_worker = worker;
  source.alive_text.assign(text.substr(0, 300));
}

void ReaderImpl::moment(Source& source, Sort sort, const std::string& name, const When& when,
                        int worker, std::string_view text) {
  auto& count = moment_counts_[static_cast<std::size_t>(sort)];
  count += repeated_;
  if (count > static_cast<std::int64_t>(kMostMoments)) return;
  Moment out;
  out.sort = to_string(sort);
  out.name = name;
  out.source = source.index;
  out.line = when.line;
  out.worker = workers_[worker].label;
  out.rank = workers_.rank(worker);
  out.phase = source.timeline.phase();
  out.text = shown_masked(text);
  moments_.push_back(std::move(out));
  moment_whens_.push_back(when);
}

void ReaderImpl::say(Source& source, Said::What what, const When& when, int worker,
                     std::string name, nlohmann::json value, std::string_view text) {
  if (!said_) return;
  Said out;
  out.what = what;
  out.source = source.index;
  out.line = when.line;
  out.phase = source.timeline.phase();
  out.name = std::move(name);
  out.value = std::move(value);
  if (worker >= 0) {
    out.worker = workers_[worker].label;
    out.rank = workers_.rank(worker);
  }
  out.text = shown(text);
  out.t_ns = source.t_ns;
  said_(out);
}

Reading ReaderImpl::so_far(const Ending& ending) {
  for (const auto& source : sources_) settle_serving(*source);
  return judge(ending);
}

Reading ReaderImpl::finish(const Ending& ending) {
  for (const auto& source : sources_) {
    source->splitter.finish([&](std::string_view raw, std::int64_t number) {
      if (!raw.empty()) take_line(*source, raw, number);
    });
    if (!source->known) {
      // A log that says too little is of the engine that wrote the others.
      const Source* other = main_source();
      int engine = other && other->sure ? other->grammar : winner(*source, 1);
      if (engine < 0 && other) engine = other->grammar;
      replay(*source, engine);
    }
    settle_serving(*source);
  }
  tell_open_failures();
  return judge(ending);
}

}  // namespace internal

Reader::Reader(const Grammars& grammars, Options options)
    : impl_(std::make_unique<internal::ReaderImpl>(grammars.set_, std::move(options))) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

int Reader::add_source(std::string name) { return impl_->add_source(std::move(name)); }
void Reader::feed(int source, std::string_view bytes, std::int64_t t_ns) {
  impl_->feed(source, bytes, t_ns);
}
void Reader::on_said(std::function<void(const Said&)> said) { impl_->on_said(std::move(said)); }
Reading Reader::so_far(const Ending& ending) { return impl_->so_far(ending); }
Reading Reader::finish(const Ending& ending) { return impl_->finish(ending); }

std::string_view to_string(Said::What what) {
  switch (what) {
    case Said::What::kPhaseBegin:
      return "phase_begin";
    case Said::What::kPhaseEnd:
      return "phase_end";
    case Said::What::kProgress:
      return "progress";
    case Said::What::kFigure:
      return "figure";
    case Said::What::kSkip:
      return "skip";
    case Said::What::kCause:
      return "cause";
    case Said::What::kEcho:
      return "echo";
    case Said::What::kVictim:
      return "victim";
    case Said::What::kOutside:
      return "outside";
    case Said::What::kHang:
      return "hang";
    case Said::What::kCompile:
      return "compile";
    case Said::What::kReady:
      return "ready";
  }
  return "";
}

}  // namespace warmgate::explain
