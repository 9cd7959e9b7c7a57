#include "harness/target/server/clocks.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

// A health check that generates a token may take its time (SGLang's: 20 s); one that never answers
// must not stop the clock that would say so.
constexpr double kHealthAnswer_s = 25;

// The id of the first entry of an OpenAI list of models.
std::string first_model(const std::string& body) {
  const nlohmann::json all = nlohmann::json::parse(body, nullptr, false);
  if (!all.is_object()) return "";
  const auto data = all.find("data");
  if (data == all.end() || !data->is_array() || data->empty() || !data->front().is_object()) {
    return "";
  }
  const auto id = data->front().find("id");
  return id != data->front().end() && id->is_string() ? id->get<std::string>() : "";
}

// What came last, for a person: an answer of the wrong kind, or what was wrong with it.
std::string last_text(const HttpAnswer& answer) {
  const double waited_s = answer.total_ms() / 1000;
  if (answer.end == HttpEnd::kCancelled) {
    return answer.read_bytes == 0
               ? fmt::format("nothing came within {:.1f} s", waited_s)
               : fmt::format("only {} byte{} of a{} came within {:.1f} s", answer.read_bytes,
                             answer.read_bytes == 1 ? "" : "s",
                             answer.status == 0 ? " head" : "n answer", waited_s);
  }
  std::string out = answer.status == 0 ? "" : fmt::format("HTTP {}", answer.status);
  if (answer.answered() && answer.status >= 300 && answer.status < 400)
    out += ", a redirect, which is not followed";
  if (!answer.answered()) {
    const std::string wrong =
        answer.error.empty() ? std::string(http_end_name(answer.end)) : answer.error;
    out += (out.empty() ? "" : ", ") + wrong;
  }
  return out;
}

std::string answer_text(const HttpAnswer& answer) {
  return std::string(http_end_name(answer.end)) + " " + std::to_string(answer.status);
}

}  // namespace

Clocks::Clocks(ClockSpec spec, EventSink& sink, const CancelToken& cancel)
    : spec_(std::move(spec)), sink_(sink), cancel_(cancel) {}

Clocks::~Clocks() {
  if (thread_.joinable()) thread_.join();
}

void Clocks::start() {
  thread_ = std::thread([this] {
    run();
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  });
}

void Clocks::run() {
  const auto until = [&](auto&& step) {
    while (!cancel_.cancelled()) {
      const std::int64_t begin = trace::now_ns();
      if (step()) return true;
      const double spent = static_cast<double>(trace::now_ns() - begin) / 1e9;
      if (!pause(std::max(0.001, kPoll_s - spent))) return false;
    }
    return false;
  };
  if (!until([&] { return port(); }) || !until([&] { return health(); })) return never_ready();
  {
    const std::lock_guard lock(mutex_);
    ready_ = true;
    changed_.notify_all();
  }
  if (!spec_.models.empty()) until([&] { return models(); });
}

bool Clocks::pause(double seconds) const {
  pollfd watch{cancel_.fd(), POLLIN, 0};
  return ::poll(&watch, 1, static_cast<int>(seconds * 1000) + 1) == 0;
}

void Clocks::never_ready() {
  HttpAnswer answer = last_answer_;
  answer.end_ns = trace::now_ns();
  trace::Event event = http(answer, spec_.health.path, asked_ == 0 ? "port" : "health");
  event.body.set("when", "never ready");
  event.body.set("asked", asked_ == 0 ? tried_ : asked_);
  event.body.set("port", spec_.port);
  event.body.set("last", asked_ == 0 ? port_error_ : last_text(last_answer_));
  if (asked_ > 0) event.body.set("wanted", spec_.health.ok);
  sink_.add(std::move(event));
}

void Clocks::struck(const char* clock, std::int64_t t_ns) {
  trace::Event event;
  event.ev = "ready";
  event.t_ns = t_ns;
  event.rank = spec_.rank;
  event.src = "http";
  event.source = "http:" + spec_.member;
  event.body = {{"clock", clock}, {"member", spec_.member}};
  sink_.add(std::move(event));
}

trace::Event Clocks::http(const HttpAnswer& answer, const std::string& path,
                          const char* clock) const {
  trace::Event event;
  event.ev = "http";
  event.t_ns = answer.end_ns;
  event.rank = spec_.rank;
  event.src = "http";
  event.source = "http:" + spec_.member;
  event.body = {{"path", path},
                {"clock", clock},
                {"member", spec_.member},
                {"status", answer.status},
                {"end", std::string(http_end_name(answer.end))},
                {"ms", answer.total_ms()}};
  if (!answer.error.empty()) event.body.set("error", answer.error);
  return event;
}

HttpAnswer Clocks::ask(const std::string& path, double first_byte_s) const {
  HttpRequest request;
  request.host = spec_.host;
  request.port = spec_.port;
  request.path = path;
  HttpLimits limits;
  limits.first_byte_s = first_byte_s;
  limits.idle_s = 5;
  limits.total_s = first_byte_s + 5;
  return http_call(request, limits, &cancel_);
}

bool Clocks::port() {
  const HttpEnd end = try_connect(spec_.host, spec_.port, 1, &cancel_);
  ++tried_;
  if (end != HttpEnd::kCancelled || tried_ == 1) port_error_ = http_end_name(end);
  if (end != HttpEnd::kAnswered) return false;
  struck("port", trace::now_ns());
  if (spec_.health.path.empty()) ready_ns_ = trace::now_ns();
  return true;
}

bool Clocks::health() {
  if (spec_.health.path.empty()) return true;
  const HttpAnswer answer = ask(spec_.health.path, kHealthAnswer_s);
  // One that our own end cut off at once says less than the one before.
  constexpr double kTelling_ms = 1000;
  const bool cut = answer.end == HttpEnd::kCancelled;
  if (!cut || asked_ == 0 || answer.read_bytes > 0 || answer.total_ms() > kTelling_ms) {
    ++asked_;
    last_answer_ = answer;
  }
  if (cut) return false;
  const std::string text = answer_text(answer);
  if (text != last_health_) sink_.add(http(answer, spec_.health.path, "health"));
  last_health_ = text;
  if (!answer.answered() || answer.status != spec_.health.ok) return false;
  ready_ns_ = answer.end_ns;
  struck("health", answer.end_ns);
  return true;
}

bool Clocks::models() {
  const HttpAnswer answer = ask(spec_.models, 5);
  if (answer.end == HttpEnd::kCancelled) return false;
  const std::string text = answer_text(answer);
  if (text != last_models_ && !answer.ok()) sink_.add(http(answer, spec_.models, "models"));
  last_models_ = text;
  // A server without this route will not get one.
  const bool never = answer.answered() && answer.status >= 400 && answer.status < 500;
  if (!answer.ok() && !never) return false;
  if (answer.ok()) struck("models", answer.end_ns);
  const std::lock_guard lock(mutex_);
  model_ = answer.ok() ? first_model(answer.body) : "";
  models_done_ = true;
  changed_.notify_all();
  return true;
}

bool Clocks::wait_ready() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_ || over_; });
  return ready_;
}

std::string Clocks::wait_model(double seconds) {
  if (spec_.models.empty()) return "";
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                    [&] { return models_done_ || over_; });
  return model_;
}

void Clocks::ask_again(const std::string& when) {
  if (spec_.health.path.empty()) return;
  const HttpAnswer answer = ask(spec_.health.path, kHealthAnswer_s);
  if (answer.end == HttpEnd::kCancelled) return;
  trace::Event event = http(answer, spec_.health.path, "health");
  event.body.set("when", when);
  sink_.add(std::move(event));
}

}  // namespace warmgate::target
