#include "harness/trace/event.h"

#include <algorithm>
#include <stdexcept>

#include "harness/trace/vocabulary.h"
#include "harness/trace/wire.h"

namespace warmgate::trace {
namespace {

const json* field(const json& body, std::string_view key) {
  const auto it = body.find(std::string(key));
  return it == body.end() ? nullptr : &*it;
}

bool has_type(const json& value, FieldType type) {
  switch (type) {
    case FieldType::kString:
      return value.is_string();
    case FieldType::kNumber:
      return value.is_number();
    case FieldType::kBool:
      return value.is_boolean();
    case FieldType::kArray:
      return value.is_array();
    case FieldType::kAny:
      return true;
  }
  return false;
}

std::string_view type_name(FieldType type) {
  switch (type) {
    case FieldType::kString:
      return "a string";
    case FieldType::kNumber:
      return "a number";
    case FieldType::kBool:
      return "true or false";
    case FieldType::kArray:
      return "an array";
    case FieldType::kAny:
      return "any value";
  }
  return "";
}

}  // namespace

std::string Event::str(std::string_view key, std::string_view fallback) const {
  const json* f = field(body, key);
  return f && f->is_string() ? f->get<std::string>() : std::string(fallback);
}

std::int64_t Event::num(std::string_view key, std::int64_t fallback) const {
  const json* f = field(body, key);
  if (!f || !f->is_number()) return fallback;
  if (f->is_number_integer()) return f->get<std::int64_t>();
  const double value = f->get<double>();
  return value >= -9.2e18 && value <= 9.2e18 ? static_cast<std::int64_t>(value) : fallback;
}

double Event::real(std::string_view key, double fallback) const {
  const json* f = field(body, key);
  return f && f->is_number() ? f->get<double>() : fallback;
}

bool Event::flag(std::string_view key, bool fallback) const {
  const json* f = field(body, key);
  return f && f->is_boolean() ? f->get<bool>() : fallback;
}

std::vector<std::string> Event::strings(std::string_view key) const {
  std::vector<std::string> out;
  const json* f = field(body, key);
  if (!f || !f->is_array()) return out;
  for (const json& item : *f) {
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
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.t_ns < b.t_ns; });
}

Event parse_event(std::string_view line) {
  // The parser takes a NUL for the end of its input and would ignore what follows.
  if (line.find('\0') != std::string_view::npos) throw std::runtime_error("not JSON; a NUL byte");
  json body = json::parse(line, nullptr, false);
  if (body.is_discarded()) throw std::runtime_error("not JSON; an event is one JSON object a line");
  if (!body.is_object())
    throw std::runtime_error("not an object; an event is one JSON object a line");
  Event event;
  const json* ev = field(body, "ev");
  if (!ev || !ev->is_string()) throw std::runtime_error("field 'ev' is missing or not a string");
  event.ev = ev->get<std::string>();
  const json* t = field(body, "t");
  if (!t || !t->is_number_integer())
    throw std::runtime_error("field 't' (ns, monotonic) is missing or not an integer");
  event.t_ns = t->get<std::int64_t>();
  // A rank that no world has is no rank; a cast would turn it into one.
  if (const json* rank = field(body, "rank"); rank && rank->is_number_integer()) {
    const auto value = rank->get<std::int64_t>();
    if (value >= 0 && value <= 1'000'000) event.rank = static_cast<int>(value);
  }
  if (const json* src = field(body, "src"); src && src->is_string())
    event.src = src->get<std::string>();
  if (const json* res = field(body, "res_ns"); res && res->is_number_integer())
    event.res_ns = res->get<std::int64_t>();
  for (const char* key : {"ev", "t", "rank", "src", "res_ns"}) body.erase(key);
  if (const EventKind* kind = find_kind(event.ev)) {
    for (const FieldRule& rule : kind->required) {
      const json* value = field(body, rule.name);
      if (!value || !has_type(*value, rule.type)) {
        throw std::runtime_error("event '" + event.ev + "': field '" + std::string(rule.name) +
                                 "' must be " + std::string(type_name(rule.type)));
      }
    }
  }
  event.body = std::move(body);
  return event;
}

std::string to_line(const Event& event) {
  std::string out = "{\"ev\":";
  append_json_string(out, event.ev);
  out += ",\"t\":" + std::to_string(event.t_ns);
  out += ",\"rank\":" + (event.rank ? std::to_string(*event.rank) : std::string("null"));
  out += ",\"src\":";
  append_json_string(out, event.src);
  if (event.res_ns > 0) out += ",\"res_ns\":" + std::to_string(event.res_ns);
  for (const auto& [key, value] : event.body.items()) {
    out += ',';
    append_json_string(out, key);
    out += ':' + value.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return out + '}';
}

Event harness_event(std::string ev, json body, std::optional<int> rank) {
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

void LineReader::accept(std::string_view line) {
  if (line.empty()) return;
  if (line_ >= kMaxLinesPerRun + 100) {
    if (line_ == kMaxLinesPerRun + 100)
      bad("more than 20,000 lines in one run; the rest is not read", line);
    return;
  }
  try {
    Event event = parse_event(line);
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
