#include "harness/target/server/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

namespace warmgate::target {
namespace {

constexpr std::int64_t kMaxConcurrency = 256;

double ms(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) / 1e6;
}

// Nearest rank; `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return text.substr(0, 500);
}

// What a server says of a request that it refuses: its own words where the preset knows them.
std::string refusal(const HttpAnswer& http, const StreamResult& answer) {
  std::string said = answer.error;
  const auto document = nlohmann::json::parse(http.body, nullptr, false);
  if (said.empty() && document.is_object()) {
    for (const char* at : {"/error/message", "/message", "/detail", "/error"}) {
      const nlohmann::json::json_pointer where(at);
      if (!document.contains(where) || !document.at(where).is_string()) continue;
      said = document.at(where).get<std::string>();
      break;
    }
  }
  if (said.empty()) said = http.body.substr(0, 200);
  return one_line(fmt::format("status {}{}{}", http.status, said.empty() ? "" : ": ", said));
}

class Driver {
 public:
  Driver(const WorkloadSpec& spec, const Emit& emit, const CancelToken* cancel)
      : spec_(spec), emit_(emit), cancel_(cancel) {}

  WorkloadResult run() {
    const std::int64_t count = request_count(spec_);
    result_.requests.resize(static_cast<std::size_t>(count));
    std::int64_t ordinal = 0;
    for (const auto& group : spec_.groups) {
      for (std::int64_t i = 0; i < group.requests && ordinal < count; ++i) {
        RequestResult& r = result_.requests[static_cast<std::size_t>(ordinal)];
        describe(r, ++ordinal, group);
      }
    }
    const std::int64_t concurrency =
        std::clamp<std::int64_t>(spec_.concurrency, 1, kMaxConcurrency);
    const std::int64_t alone =
        concurrency == 1 ? count : std::clamp<std::int64_t>(spec_.alone, 0, count);
    for (next_ = 0; next_ < alone && !cancelled();)
      perform(result_.requests[static_cast<std::size_t>(next_++)], true);
    if (alone < count && !cancelled()) together(std::min(concurrency, count - alone));
    result_.cancelled = cancelled();
    return std::move(result_);
  }

 private:
  bool cancelled() const { return cancel_ != nullptr && cancel_->cancelled(); }

  static void describe(RequestResult& r, std::int64_t ordinal,
                       const scenario::ServerTarget::Group& group) {
    r.ordinal = ordinal;
    r.request_class = group.request_class;
    r.id = fmt::format("{}-{}", group.request_class, ordinal);
    r.prompt_asked = group.prompt_tokens;
    r.tokens_asked = group.output_tokens;
    r.error = "not sent";
  }

  void together(std::int64_t threads) {
    std::vector<std::thread> pool;
    const auto work = [this] {
      const auto count = static_cast<std::int64_t>(result_.requests.size());
      for (std::int64_t mine; !cancelled() && (mine = next_++) < count;)
        perform(result_.requests[static_cast<std::size_t>(mine)], false);
    };
    for (std::int64_t i = 0; i < threads; ++i) pool.emplace_back(work);
    for (std::thread& each : pool) each.join();
  }

  void perform(RequestResult& r, bool alone) {
    HttpRequest request;
    request.host = spec_.host;
    request.port = spec_.port;
    request.method = "POST";
    request.path = spec_.completion.path;
    request.body = request_body(spec_, r.ordinal)
                       .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    AnswerReader reader(spec_.completion, r.request_class);
    r.alone = alone;
    r.sent = true;
    const HttpAnswer http =
        http_call(request, spec_.limits, cancel_, [&](std::string_view bytes, std::int64_t t_ns) {
          reader.feed(bytes, t_ns);
          return true;
        });
    r.answer = reader.finish(http.end_ns);
    r.start_ns = http.start_ns;
    r.end_ns = http.end_ns;
    r.end = http.end;
    r.status = http.status;
    r.total_ms = http.total_ms();
    if (http.end == HttpEnd::kCancelled) {
      r.error = "cancelled";
      return;  // nobody's fault, so no event
    }
    judge(r, http, exact(request.body, r.request_class));
    measure(r, http);
    say(r);
  }

  // A body that says ignore_eos asks for so many tokens and no fewer; a grammar may end earlier.
  static bool exact(const std::string& body, const std::string& request_class) {
    const auto document = nlohmann::json::parse(body, nullptr, false);
    return request_class != "grammar" && holds_ignore_eos(document);
  }
  static bool holds_ignore_eos(const nlohmann::json& body) {
    if (!body.is_object()) return false;
    for (const auto& [key, value] : body.items()) {
      if (key == "ignore_eos" && value == true) return true;
      if (holds_ignore_eos(value)) return true;
    }
    return false;
  }

  static void judge(RequestResult& r, const HttpAnswer& http, bool exact) {
    const bool some = r.answer.tokens.value_or(0) > 0 || r.answer.text_bytes > 0;
    if (!http.answered()) {
      r.error = one_line(fmt::format("{}: {}", http_end_name(http.end), http.error));
    } else if (!http.ok()) {
      r.error = refusal(http, r.answer);
    } else if (!r.answer.error.empty()) {
      r.error = one_line("the answer says: " + r.answer.error);
    } else if (!r.answer.done) {
      r.error = "the answer ended without its promised end";
    } else if (!some) {
      r.error = "nothing was generated";
    } else if (r.answer.tokens_from == "usage" && *r.answer.tokens > r.tokens_asked) {
      r.error = fmt::format("{} tokens by the server's count, and at most {} were asked for",
                            *r.answer.tokens, r.tokens_asked);
    } else if (exact && r.answer.tokens_from == "usage" && *r.answer.tokens < r.tokens_asked) {
      r.error = fmt::format("{} tokens of {}, and ends of text were to be ignored",
                            *r.answer.tokens, r.tokens_asked);
    } else {
      r.ok = true;
      r.error.clear();
    }
  }

  static void measure(RequestResult& r, const HttpAnswer& http) {
    if (!http.ok()) return;
    if (r.answer.first_ns > 0) r.ttft_ms = ms(http.sent_ns, r.answer.first_ns);
    std::vector<double> gaps = r.answer.gaps_ms;
    if (gaps.empty()) return;
    std::sort(gaps.begin(), gaps.end());
    r.inter_token_ms_p50 = quantile(gaps, 0.5);
    r.inter_token_ms_p99 = quantile(gaps, 0.99);
  }

  trace::Event event(std::string ev, std::int64_t t_ns) const {
    trace::Event out;
    out.ev = std::move(ev);
    out.t_ns = t_ns;
    out.rank = spec_.rank;
    out.src = "http";
    out.source = spec_.member.empty() ? "http" : "http " + spec_.member;
    return out;
  }

  void say(const RequestResult& r) {
    if (!emit_) return;
    if (spec_.say_first_token && r.answer.first_ns > 0 && r.status / 100 == 2 &&
        !first_said_.exchange(true)) {
      trace::Event first = event("ready", r.answer.first_ns);
      first.body.add("clock", std::string_view("first_token"));
      emit_(std::move(first));
    }
    trace::Event e = event("request", r.end_ns);
    e.body.add("id", std::string_view(r.id));
    e.body.add("class", std::string_view(r.request_class));
    if (spec_.completion.shows.count(r.request_class) != 0)
      e.body.add("class_seen", r.answer.class_seen);
    if (!spec_.member.empty()) e.body.add("member", std::string_view(spec_.member));
    e.body.add("ok", r.ok);
    if (r.status != 0) e.body.add("status", std::int64_t{r.status});
    e.body.add("end", http_end_name(r.end));
    e.body.add("ordinal", r.ordinal);
    e.body.add("alone", r.alone);
    e.body.add("prompt_asked", r.prompt_asked);
    e.body.add("tokens_asked", r.tokens_asked);
    e.body.add("chunks", r.answer.chunks);
    if (r.answer.prompt_tokens) e.body.add("prompt_tokens", *r.answer.prompt_tokens);
    if (r.answer.tokens) {
      e.body.add("tokens", *r.answer.tokens);
      e.body.add("tokens_from", std::string_view(r.answer.tokens_from));
    }
    if (r.ttft_ms) e.body.add("ttft_ms", *r.ttft_ms);
    if (r.inter_token_ms_p50) {
      e.body.add("inter_token_ms_p50", *r.inter_token_ms_p50);
      e.body.add("inter_token_ms_p99", *r.inter_token_ms_p99);
      e.body.add("gaps", std::string_view(r.answer.gaps_between));
    }
    e.body.add("total_ms", r.total_ms);
    if (r.answer.text_bytes > 0) e.body.add("text_sha256", std::string_view(r.answer.text_sha256));
    if (r.answer.bad_payloads > 0)
      e.body.add("bad_payloads", static_cast<std::int64_t>(r.answer.bad_payloads));
    if (!r.error.empty()) e.body.add("error", std::string_view(r.error));
    emit_(std::move(e));
  }

  const WorkloadSpec& spec_;
  const Emit& emit_;
  const CancelToken* cancel_;
  WorkloadResult result_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<bool> first_said_{false};
};

}  // namespace

WorkloadResult run_workload(const WorkloadSpec& spec, const Emit& emit, const CancelToken* cancel) {
  return Driver(spec, emit, cancel).run();
}

std::map<std::string, double> WorkloadResult::figures() const {
  std::map<std::string, double> out;
  std::vector<double> ttft, total, gaps;
  bool any = false;
  std::int64_t failed = 0;
  for (const RequestResult& r : requests) {
    if (!r.sent || r.end == HttpEnd::kCancelled) continue;
    any = true;
    if (!r.ok) {
      ++failed;
      continue;
    }
    if (r.ordinal <= 3 && r.alone && r.ttft_ms && r.request_class == requests[0].request_class &&
        r.prompt_asked == requests[0].prompt_asked) {
      constexpr const char* kNames[] = {"ttft_first_ms", "ttft_second_ms", "ttft_third_ms"};
      out[kNames[r.ordinal - 1]] = *r.ttft_ms;
    }
    if (r.ordinal >= 3) {
      total.push_back(r.total_ms);
      if (r.ttft_ms) ttft.push_back(*r.ttft_ms);
    }
    if (r.inter_token_ms_p50) {
      gaps.push_back(*r.inter_token_ms_p50);
      out["inter_token_p99_ms"] = std::max(out["inter_token_p99_ms"], *r.inter_token_ms_p99);
    }
    for (const auto& [name, value] : r.answer.figures) out[name] += value;
  }
  if (any) out["requests_failed"] = static_cast<double>(failed);
  for (const auto& [name, values] : {std::pair{"ttft_ms", &ttft}, std::pair{"request_ms", &total},
                                     std::pair{"inter_token_ms", &gaps}}) {
    if (const auto value = median(*values)) out[name] = *value;
  }
  return out;
}

std::optional<std::int64_t> WorkloadResult::steady_ns() const {
  for (std::size_t i = 1; i + 1 < requests.size(); ++i) {
    const RequestResult &mine = requests[i], &next = requests[i + 1];
    const bool like =
        mine.request_class == next.request_class && mine.prompt_asked == next.prompt_asked;
    if (!mine.ok || !next.ok || !mine.alone || !next.alone || !like) continue;
    if (!mine.ttft_ms || !next.ttft_ms) continue;
    if (*mine.ttft_ms <= std::max(1.25 * *next.ttft_ms, *next.ttft_ms + 5)) return mine.end_ns;
  }
  return std::nullopt;
}

std::vector<trace::Event> figure_events(const WorkloadResult& result, int rank, std::int64_t t_ns) {
  std::vector<trace::Event> out;
  for (const auto& [name, value] : result.figures()) {
    trace::Event e;
    e.ev = "counter";
    e.t_ns = t_ns;
    e.rank = rank;
    e.src = "http";
    e.source = "http";
    e.body.add("name", std::string_view(name));
    e.body.add("value", value);
    out.push_back(std::move(e));
  }
  return out;
}

}  // namespace warmgate::target
