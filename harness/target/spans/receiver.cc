#include "harness/target/spans/receiver.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <charconv>

#include "harness/target/spans/gunzip.h"
#include "harness/target/spans/python_stack.h"
#include "harness/trace/vocabulary.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

constexpr std::string_view kPath = "/v1/traces";
constexpr std::size_t kMostBody = 4 << 20;
// Reading two clocks one after the other, and what a disciplined one is slewed by (at most 500 ppm)
// in the seconds between a span and its arrival.
constexpr std::int64_t kClockBlur_ns = 1'000'000;
// A span that is older than the machine's last day, or that ends in the future, has another clock.
constexpr std::int64_t kOldest_ns = 86'400'000'000'000, kFuture_ns = 1'000'000'000;

std::int64_t wall_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// `/v1/traces` of nobody in particular, or `/rankN/v1/traces`. False: neither.
bool read_path(std::string_view target, std::optional<int>& rank) {
  target = target.substr(0, target.find('?'));
  constexpr std::string_view kRank = "/rank";
  if (!target.ends_with(kPath)) return false;
  target.remove_suffix(kPath.size());
  if (target.empty()) return true;
  if (!target.starts_with(kRank)) return false;
  target.remove_prefix(kRank.size());
  int number = 0;
  const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), number);
  if (error != std::errc() || end != target.data() + target.size() || number < 0) return false;
  rank = number;
  return true;
}

std::string media_type(std::string_view text) {
  std::string out(text.substr(0, text.find(';')));
  while (!out.empty() && out.back() == ' ') out.pop_back();
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return out;
}

std::string first_of(const Attributes& attributes, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (name.empty()) continue;
    const auto it = attributes.find(name);
    if (it != attributes.end() && !it->second.empty()) return it->second;
  }
  return "";
}

std::int64_t whole(const std::string& text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? out : 0;
}

}  // namespace

std::string SpanReceiver::path_of(int rank) { return fmt::format("/rank{}{}", rank, kPath); }

SpanReceiver::Clock SpanReceiver::read_clock() {
  const std::int64_t before = trace::now_ns(), wall = wall_ns(), after = trace::now_ns();
  return {before + (after - before) / 2 - wall, after - before + kClockBlur_ns};
}

void SpanReceiver::open(EventSink& sink) {
  const std::lock_guard lock(mutex_);
  sink_ = &sink;
  at_begin_ = read_clock();
}

void SpanReceiver::mark_end() { end_ns_ = trace::now_ns(); }

ServedReply SpanReceiver::refuse(int status, const std::string& why) {
  ++refused_;
  if (first_refusal_.empty()) first_refusal_ = fmt::format("{} ({})", why, status);
  return {status, "text/plain", why + "\n"};
}

// As the specification of OTLP/HTTP has it: an empty ExportTraceServiceResponse in the encoding of
// the request; errors that no repetition mends are 400, 413 and 415.
ServedReply SpanReceiver::serve(const ServedRequest& request) {
  const std::lock_guard lock(mutex_);
  std::optional<int> rank;
  if (!read_path(request.target, rank)) return {404, "text/plain", "there is /v1/traces only\n"};
  if (request.method != "POST") return {405, "text/plain", "POST it\n"};
  ++requests_;
  const std::string type = media_type(request.content_type);
  const bool json = type == "application/json";
  if (!json && type != "application/x-protobuf") {
    return refuse(415, "neither application/x-protobuf nor application/json");
  }
  std::string unpacked;
  const std::string encoding = media_type(request.content_encoding);
  if (encoding == "gzip") {
    const Gunzip how = gunzip(request.body, kMostBody, unpacked);
    if (how == Gunzip::kTooLarge) return refuse(413, "more than 4 MiB once it is unpacked");
    if (how == Gunzip::kBroken) return refuse(400, "not what gzip writes");
  } else if (!encoding.empty() && encoding != "identity") {
    return refuse(415, "of the encodings only gzip is read");
  }
  const std::string& body = encoding == "gzip" ? unpacked : request.body;
  const std::size_t room = kMostSpans - std::min(kMostSpans, spans_);
  ReceivedSpans got;
  try {
    got = json ? read_otlp_json(body, room) : read_otlp_protobuf(body, room);
  } catch (const std::exception& error) {
    return refuse(400, error.what());
  }
  spans_ += got.spans.size();
  left_out_ += got.left_out;
  const Clock clock = read_clock();
  const std::int64_t now = trace::now_ns();
  for (const ReceivedSpan& span : got.spans) {
    const std::int64_t end = span.end_wall_ns + clock.offset_ns;
    const bool legal = span.begin_wall_ns > 0 && span.end_wall_ns >= span.begin_wall_ns;
    if (!legal || end > now + kFuture_ns ||
        span.begin_wall_ns + clock.offset_ns < now - kOldest_ns) {
      ++implausible_;
    } else if (sink_ != nullptr) {
      hello(rank);
      sink_->add(event_of(span, rank, clock));
    }
  }
  return {200, json ? "application/json" : "application/x-protobuf", json ? "{}" : ""};
}

void SpanReceiver::hello(std::optional<int> rank) {
  if (!greeted_.try_emplace(rank.value_or(-1), true).second) return;
  trace::Event out;
  out.ev = "hello";
  out.t_ns = trace::now_ns();
  out.rank = rank;
  out.src = "span";
  out.source = "span";
  out.body = trace::Fields(trace::json{{"schema", "events/1.0"},
                                       {"engine", "spans"},
                                       {"pid", 0},
                                       {"times", "wall, by the offset at arrival"},
                                       {"emits", {"span"}}});
  sink_->add(std::move(out));
}

trace::Event SpanReceiver::event_of(const ReceivedSpan& span, std::optional<int> rank,
                                    const Clock& clock) const {
  trace::Event out;
  out.ev = "span";
  out.t_ns = span.begin_wall_ns + clock.offset_ns;
  out.rank = rank;
  out.src = "span";
  // When the wall clock was set, nobody knows: spans may lie on either side.
  out.res_ns = clock.blur_ns + std::abs(clock.offset_ns - at_begin_.offset_ns);
  const Attributes& process = *span.resource;
  const std::int64_t pid = whole(first_of(process, {facts_.pid, "process.pid"}));
  out.source = pid > 0 ? fmt::format("span:{}", pid) : "span";
  trace::json body = {{"name", span.name.empty() ? "(no name)" : span.name},
                      {"ms", static_cast<double>(span.end_wall_ns - span.begin_wall_ns) / 1e6},
                      {"status", span.status == 2   ? "error"
                                 : span.status == 1 ? "ok"
                                                    : "unset"}};
  const auto mapped = facts_.phases.find(span.name);
  const auto& phases = trace::phases();
  if (mapped != facts_.phases.end()) {
    body["phase"] = mapped->second;
  } else if (std::find(phases.begin(), phases.end(), span.name) != phases.end()) {
    body["phase"] = span.name;
  }
  if (pid > 0) body["pid"] = pid;
  const auto set = [&body](const char* key, const std::string& text) {
    if (!text.empty()) body[key] = text;
  };
  set("service", first_of(process, {"service.name"}));
  set("worker", first_of(process, {facts_.process}));
  set("id", span.id);
  set("parent", span.parent);
  set("function", first_of(span.attributes, {"code.function.name", "code.function"}));
  set("file", first_of(span.attributes, {"code.file.path", "code.filepath"}));
  set("message", span.status_message);
  const std::int64_t end = end_ns_.load();
  for (const SpanException& exception : span.exceptions) {
    const std::int64_t at = exception.wall_ns + clock.offset_ns;
    if (end != 0 && at > end) continue;
    trace::json one = {
        {"type", exception.type.empty() ? "exception" : exception.type},
        {"message", exception.message},
        {"at_ms", static_cast<double>(exception.wall_ns - span.begin_wall_ns) / 1e6}};
    trace::json& frames = one["frames"] = trace::json::array();
    for (const StackFrame& frame : innermost_frames(exception.stack)) {
      frames.push_back({{"function", frame.function}, {"file", frame.file}, {"line", frame.line}});
    }
    body["exceptions"].push_back(std::move(one));
  }
  out.body = trace::Fields(body);
  return out;
}

void SpanReceiver::close() {
  const std::lock_guard lock(mutex_);
  if (sink_ == nullptr) return;
  const std::size_t usable = spans_ - implausible_;
  trace::json body = {{"probe", "spans"},
                      {"status", usable > 0 ? "attached" : "not attached"},
                      {"spans", spans_},
                      {"left_out", left_out_},
                      {"implausible", implausible_},
                      {"requests", requests_},
                      {"refused", refused_}};
  if (usable == 0) {
    body["reason"] =
        refused_ > 0
            ? fmt::format("{} came and could not be read, first: {}",
                          refused_ == 1 ? "1 request" : fmt::format("{} requests", refused_),
                          first_refusal_)
        : spans_ > 0 ? "the times of all spans that came are impossible on this machine"
                     : "no span came: the engine exports none, or OpenTelemetry's packages are not "
                       "installed with it";
  }
  trace::Event out;
  out.ev = "probe";
  out.t_ns = trace::now_ns();
  out.src = "span";
  out.source = "span";
  out.body = trace::Fields(body);
  sink_->add(std::move(out));
  sink_ = nullptr;
}

}  // namespace warmgate::target
