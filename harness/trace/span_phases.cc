#include "harness/trace/span_phases.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace warmgate::trace {
namespace {

constexpr std::size_t kMostPieces = 20'000, kMostFaults = 200;
constexpr std::int64_t kLongest_ns = 86'400'000'000'000;

// Times of hostile traces lie anywhere.
std::int64_t later(std::int64_t t_ns, std::int64_t by_ns) {
  std::int64_t out = 0;
  return __builtin_add_overflow(t_ns, by_ns, &out) ? INT64_MAX : out;
}

std::int64_t duration_ns(const Event& span) {
  const double ms = span.real("ms");
  if (!(ms > 0)) return 0;
  return static_cast<std::int64_t>(std::min(ms * 1e6, static_cast<double>(kLongest_ns)));
}

SpanPhase whole_span(const Trace& trace, std::size_t i) {
  const Event& e = trace.events[i];
  SpanPhase out;
  out.phase = e.str("phase");
  out.rank = e.rank.value_or(-1);
  out.pid = e.num("pid");
  out.begin_ns = e.t_ns;
  out.end_ns = later(e.t_ns, duration_ns(e));
  out.res_ns = e.res_ns;
  out.error = e.body.text("status") == "error";
  out.event = i;
  return out;
}

// One process: spans sorted so that what contains comes before what it contains. A stack of those
// that are open gives each stretch of time to the innermost.
class Pieces {
 public:
  explicit Pieces(std::vector<SpanPhase>& out) : out_(out) {}

  void add(const SpanPhase& span) {
    close_until(span.begin_ns);
    if (!open_.empty()) piece(open_.back(), span.begin_ns, false);
    open_.push_back({span, span.begin_ns});
  }
  void finish() { close_until(INT64_MAX); }

 private:
  struct Open {
    SpanPhase span;
    std::int64_t from_ns;  // what was not given to another yet begins here
  };

  void close_until(std::int64_t t_ns) {
    while (!open_.empty() && open_.back().span.end_ns <= t_ns) {
      const std::int64_t end = open_.back().span.end_ns;
      piece(open_.back(), end, true);
      open_.pop_back();
      if (!open_.empty()) open_.back().from_ns = std::max(open_.back().from_ns, end);
    }
  }

  void piece(Open& open, std::int64_t end_ns, bool last) {
    const bool nothing = end_ns <= open.from_ns && !(last && open.from_ns == open.span.begin_ns);
    // The rest of a phase that contains the same phase is no second one.
    if ((nothing && !(last && open.span.error)) || out_.size() >= kMostPieces) return;
    SpanPhase out = open.span;
    out.begin_ns = open.from_ns;
    out.end_ns = std::max(open.from_ns, end_ns);
    out.last = last;
    open.from_ns = end_ns;
    SpanPhase* before = out_.empty() ? nullptr : &out_.back();
    if (before != nullptr && before->pid == out.pid && before->rank == out.rank &&
        before->phase == out.phase && before->end_ns == out.begin_ns) {
      before->end_ns = out.end_ns;
      before->error = before->error || out.error;
      before->last = out.last;
      return;
    }
    out_.push_back(std::move(out));
  }

  std::vector<SpanPhase>& out_;
  std::vector<Open> open_;
};

// Whose phases somebody told who watched them begin: a log, or the program itself. Requests from
// outside make a `serve` of their own.
std::set<int> told_ranks(const Trace& trace) {
  std::set<int> out;
  for (const Event& e : trace.events) {
    if (e.ev != "phase_begin" || e.src == "http" || e.src == "span") continue;
    out.insert(e.rank.value_or(-1));
  }
  return out;
}

std::string text_of(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string(key);
}

std::int64_t offset_ns(const json& exception) {
  const auto it = exception.find("at_ms");
  const double ms = it != exception.end() && it->is_number() ? it->get<double>() : 0;
  if (!(ms > 0)) return 0;
  return static_cast<std::int64_t>(std::min(ms * 1e6, static_cast<double>(kLongest_ns)));
}

// The number that ends a worker's name (Worker_1, Worker_TP1); nothing for others.
std::optional<int> number_of(std::string_view worker) {
  std::size_t begin = worker.size();
  while (begin > 0 && worker[begin - 1] >= '0' && worker[begin - 1] <= '9') --begin;
  int out = 0;
  const auto [end, error] =
      std::from_chars(worker.data() + begin, worker.data() + worker.size(), out);
  const bool named = worker.substr(0, begin).find("orker") != std::string_view::npos;
  return named && error == std::errc() ? std::optional(out) : std::nullopt;
}

Event fault_of(const Event& span, const json& exception, std::int64_t t_ns) {
  Event out;
  out.ev = "fault";
  out.t_ns = t_ns;
  out.rank = span.rank;
  out.src = "span";
  out.source = span.source;
  out.res_ns = span.res_ns;
  json body = {{"type", text_of(exception, "type")},
               {"message", text_of(exception, "message")},
               {"span", span.str("name")}};
  if (span.num("pid") > 0) body["pid"] = span.num("pid");
  if (const std::string worker = span.str("worker"); !worker.empty()) body["worker"] = worker;
  const auto frames = exception.find("frames");
  if (frames != exception.end() && frames->is_array() && !frames->empty()) {
    const json& innermost = frames->front();
    for (const char* key : {"function", "file", "line"}) {
      if (innermost.is_object() && innermost.contains(key)) body[key] = innermost[key];
    }
    body["stack"] = *frames;
  }
  out.body = Fields(body);
  return out;
}

Event phase_event(const SpanPhase& piece, const Event& span, bool begins, bool well) {
  Event out;
  out.ev = begins ? "phase_begin" : "phase_end";
  out.t_ns = begins ? piece.begin_ns : piece.end_ns;
  out.rank = span.rank;
  out.src = "span";
  out.source = span.source;
  out.res_ns = span.res_ns;
  out.body = Fields(json{{"phase", piece.phase}});
  if (const std::string worker = span.str("worker"); !worker.empty()) {
    out.body.set("worker", worker);
  }
  // An exception that left a span and was mended outside of it ended no phase badly.
  if (!begins) out.body.set("status", piece.error && piece.last && !well ? "failed" : "ok");
  return out;
}

}  // namespace

std::vector<SpanPhase> span_phases(const Trace& trace) {
  std::map<std::pair<int, std::int64_t>, std::vector<SpanPhase>> processes;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    if (e.ev != "span" || e.body.text("phase").empty()) continue;
    SpanPhase span = whole_span(trace, i);
    processes[{span.rank, span.pid}].push_back(std::move(span));
  }
  std::vector<SpanPhase> out;
  for (auto& [process, spans] : processes) {
    std::stable_sort(spans.begin(), spans.end(), [](const SpanPhase& a, const SpanPhase& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
    });
    std::vector<SpanPhase> own;
    Pieces pieces(own);
    for (const SpanPhase& span : spans) pieces.add(span);
    pieces.finish();
    if (out.size() + own.size() > kMostPieces) break;
    out.insert(out.end(), own.begin(), own.end());
  }
  return out;
}

std::vector<Event> span_faults(const Trace& trace) {
  std::map<std::string, Event> first;  // process and exception → the innermost span's word
  for (const Event& span : trace.events) {
    if (span.ev != "span") continue;
    const json* exceptions = span.body.nested("exceptions");
    if (exceptions == nullptr || !exceptions->is_array()) continue;
    for (const json& exception : *exceptions) {
      if (!exception.is_object()) continue;
      const std::int64_t t = later(span.t_ns, offset_ns(exception));
      const std::string type = text_of(exception, "type"), message = text_of(exception, "message");
      const std::string key = span.source + "\n" + type + "\n" + message;
      const auto known = first.find(key);
      if (known == first.end() ? first.size() >= kMostFaults : known->second.t_ns <= t) continue;
      first[key] = fault_of(span, exception, t);
    }
  }
  const std::vector<SpanPhase> phases = span_phases(trace);
  std::vector<Event> out;
  for (auto& [key, fault] : first) {
    for (const SpanPhase& piece : phases) {
      const bool own = piece.pid == fault.num("pid") && piece.rank == fault.rank.value_or(-1);
      // One that leaves a span does so at its end: of two that meet there the earlier saw it.
      if (!own || piece.begin_ns > fault.t_ns || fault.t_ns > piece.end_ns) continue;
      fault.body.set("phase", piece.phase);
      break;
    }
    // Where one engine is all there is, its workers are the ranks, as its log has them.
    if (const auto rank = number_of(fault.body.text("worker")); rank && trace.world <= 1) {
      fault.rank = rank;
    }
    out.push_back(std::move(fault));
  }
  return out;
}

void merge_spans(Trace& trace, bool well) {
  if (trace.indices("span").empty()) return;
  const std::set<int> told = told_ranks(trace);
  std::vector<Event> more = span_faults(trace);
  std::set<int> telling;
  for (const SpanPhase& piece : span_phases(trace)) {
    if (told.count(piece.rank) > 0) continue;
    telling.insert(piece.rank);
    const Event& span = trace.events[piece.event];
    more.push_back(phase_event(piece, span, true, well));
    more.push_back(phase_event(piece, span, false, well));
  }
  for (const int rank : telling) {
    Event hello;
    hello.ev = "hello";
    hello.t_ns = trace.events.empty() ? 0 : trace.events.front().t_ns;
    if (rank >= 0) hello.rank = rank;
    hello.src = "span";
    hello.source = "span";
    hello.body = Fields(json{{"schema", "events/1.0"},
                             {"engine", "spans"},
                             {"pid", 0},
                             {"emits", {"phase_begin", "phase_end", "fault"}}});
    more.push_back(std::move(hello));
  }
  trace.events.insert(trace.events.end(), std::make_move_iterator(more.begin()),
                      std::make_move_iterator(more.end()));
  trace.sort_by_time();
}

}  // namespace warmgate::trace
