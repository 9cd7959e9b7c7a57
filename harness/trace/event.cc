#include "harness/trace/event.h"

#include <algorithm>
#include <stdexcept>

#include "harness/trace/vocabulary.h"
#include "harness/trace/wire.h"

namespace warmgate::trace {
std::vector<std::string> Event::strings(std::string_view key) const {
  std::vector<std::string> out;
  const json* list = body.nested(key);
  if (list == nullptr || !list->is_array()) return out;
  for (const json& item : *list) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

std::set<std::string> Trace::emits() const {
  std::set<std::string> kinds;
  for (const Event& e : events) {
    if (e.ev == "hello") {
      for (auto& kind : e.strings("emits")) kinds.insert(std::move(kind));
    }
    if (e.src == "harness") kinds.insert(e.ev);
  }
  return kinds;
}

std::vector<std::size_t> Trace::indices(std::string_view ev) const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].ev == ev) out.push_back(i);
  }
  return out;
}

std::vector<const Event*> Trace::of(std::string_view ev) const {
  std::vector<const Event*> out;
  for (const Event& e : events) {
    if (e.ev == ev) out.push_back(&e);
  }
  return out;
}

std::string Trace::phase_at(std::size_t index) const {
  const std::optional<int> rank = events[index].rank;
  for (std::size_t i = index + 1; i-- > 0;) {
    const Event& e = events[i];
    if (e.rank != rank) continue;
    if (e.ev == "phase_begin") return e.str("phase");
    // Between two phases the earlier one still owns what happens.
    if (e.ev == "phase_end") return e.str("phase");
  }
  return "";
}

void Trace::sort_by_time() {
  const auto earlier = [](const Event& a, const Event& b) { return a.t_ns < b.t_ns; };
  // One source tells them in order, and a sort moves each of them several times.
  if (std::is_sorted(events.begin(), events.end(), earlier)) return;
  std::stable_sort(events.begin(), events.end(), earlier);
}

std::string to_line(const Event& event) {
  std::string out = "{\"ev\":";
  append_json_string(out, event.ev);
  out += ",\"t\":" + std::to_string(event.t_ns);
  out += ",\"rank\":" + (event.rank ? std::to_string(*event.rank) : std::string("null"));
  out += ",\"src\":";
  append_json_string(out, event.src);
  if (event.res_ns > 0) out += ",\"res_ns\":" + std::to_string(event.res_ns);
  const json body = event.body.to_json();
  for (const auto& [key, value] : body.items()) {
    out += ',';
    append_json_string(out, key);
    out += ':' + value.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return out + '}';
}

Event harness_event(std::string ev, Fields body, std::optional<int> rank) {
  Event event;
  event.ev = std::move(ev);
  event.t_ns = now_ns();
  event.rank = rank;
  event.src = "harness";
  event.source = "harness";
  event.body = std::move(body);
  return event;
}

LineReader::LineReader(std::string source, Trace& trace)
    : source_(std::move(source)), trace_(trace) {}

void LineReader::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    // An over-long line is thrown away as it comes: 100 MB of it must not be held in memory.
    if (skipped_ > 0 || rest_.size() + piece.size() > kMaxLineBytes) {
      if (skipped_ == 0) bad("line over 1 MiB", rest_.empty() ? piece : std::string_view(rest_));
      skipped_ += piece.size() + 1;
      rest_.clear();
    } else if (end == std::string_view::npos) {
      rest_ += piece;
    } else if (rest_.empty()) {
      accept(piece);
    } else {
      rest_ += piece;
      accept(rest_);
      rest_.clear();
    }
    if (end == std::string_view::npos) return;
    ++line_;
    skipped_ = 0;
    bytes.remove_prefix(end + 1);
  }
}

void LineReader::finish() {
  if (!rest_.empty()) bad("half a line: the source ended without a newline", rest_);
  rest_.clear();
}

// What the harness saw of a run: nobody in it may say so.
static bool of_the_harness(std::string_view kind) {
  for (const char* own : {"process_end", "leftover", "gpu_memory", "deadline", "stop", "store"})
    if (kind == own) return true;
  return false;
}

void LineReader::accept(std::string_view line) {
  if (line.empty()) return;
  if (line_ >= kMaxLinesPerRun + 100) {
    if (line_ == kMaxLinesPerRun + 100)
      bad("more than 20,000 lines in one run; the rest is not read", line);
    return;
  }
  try {
    Event event = parse_event(line);
    if (refuse_harness_ && event.src == "harness")
      throw std::runtime_error("src harness is warmgate's own; leave src out");
    if (refuse_harness_ && of_the_harness(event.ev))
      throw std::runtime_error("only warmgate itself says " + event.ev);
    event.source = source_;
    event.line = line_ + 1;
    if (event.ev == "hello") hello_ = true;
    trace_.events.push_back(std::move(event));
  } catch (const std::exception& error) {
    bad(error.what(), line);
  }
}

void LineReader::bad(std::string why, std::string_view line) {
  // A source that talks garbage only must not fill the memory either.
  if (trace_.bad_lines.size() >= 100) return;
  trace_.bad_lines.push_back(
      {source_, line_ + 1, std::move(why), std::string(line.substr(0, 200))});
}

}  // namespace warmgate::trace
