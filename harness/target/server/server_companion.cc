#include "harness/target/server/server_companion.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "harness/target/gpu_memory.h"
#include "harness/target/server/clocks.h"
#include "harness/target/server/port.h"
#include "harness/target/server/prometheus.h"
#include "harness/target/sweep.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

constexpr double kModelWait_s = 2, kSteady_s = 30;
constexpr int kDeathWait_ms = 1000;
// What a driver keeps for itself, and other users' small change.

// Could the same request succeed a little later? A wrong request stays wrong.
bool not_ready_yet(const RequestResult& request) {
  switch (request.end) {
    case HttpEnd::kAnswered:
      return request.status == 503 || request.status == 502 || request.status == 504;
    case HttpEnd::kRefused:
    case HttpEnd::kNoAnswer:
    case HttpEnd::kClosed:
      return true;
    default:
      return false;
  }
}

bool any_ok(const WorkloadResult& result) {
  return std::any_of(result.requests.begin(), result.requests.end(),
                     [](const RequestResult& request) { return request.ok; });
}

class ServerCompanion : public Companion {
 public:
  ServerCompanion(ServerCompanionSpec spec, const explain::Grammars* grammars)
      : spec_(std::move(spec)),
        gpus_(spec_.gpus),
        grammars_(grammars),
        ends_(spec_.members.size()) {}

  ~ServerCompanion() override { stop(); }

  void prepare(EventSink& sink, const std::string& marker) override {
    try {
      begin(sink, marker);
    } catch (...) {
      stop();  // nobody else will, and the sink is gone before this object is
      throw;
    }
  }

  void begin(EventSink& sink, const std::string& marker) {
    sink_ = &sink;
    wait_until_steady(spec_.gpus, kSteady_s);
    gpus_.begin();
    for (const ServerMemberSpec& member : spec_.members) {
      logs_.push_back(std::make_unique<LogFollower>(
          grammars_,
          LogMember{member.name, member.rank, spec_.members.size() == 1, member.log,
                    member.clock_offset_s},
          sink));
    }
    for (trace::Event& event : spec_.stores.events(trace::now_ns())) sink.add(std::move(event));
    CensusOptions census;
    census.stores = spec_.stores.stores;
    census.marker = marker;
    census_ = std::make_unique<Census>(
        std::move(census), [this](trace::Event event) { sink_->add(std::move(event)); });
    census_->start();
    marker_ = marker;
  }

  void started(const Started& worker) override {
    census_->add_root(worker.pid, worker.rank);
    const ServerMemberSpec& member = spec_.members[static_cast<std::size_t>(worker.rank)];
    hello(member, worker);
    trace::Event event =
        make("ready", {{"clock", "process"}, {"member", member.name}}, worker.rank, worker.t_ns);
    event.src = "harness";
    sink_->add(std::move(event));
  }

  void start() override {
    for (const ServerMemberSpec& member : spec_.members) {
      clocks_.push_back(std::make_unique<Clocks>(
          ClockSpec{member.name, member.rank, member.host, member.port,
                    spec_.preset.health.empty() ? HealthProbe{} : spec_.preset.health.front(),
                    member.rank == asked().rank ? spec_.preset.models : ""},
          *sink_, cancel_));
      if (member.port != 0) clocks_.back()->start();
    }
    thread_ = std::thread([this] {
      serve();
      if (cancel_.cancelled()) return;
      finished_ = true;
      sink_->wake();
    });
  }

  void output(int rank, std::string_view stream, std::string_view bytes,
              std::int64_t t_ns) override {
    logs_[static_cast<std::size_t>(rank)]->feed(stream, bytes, t_ns);
  }

  void ended(const verdict::WorkerEnd& end) override {
    ends_[static_cast<std::size_t>(end.rank)] = end;
    if (!end.killed_by_us && !finished_) port_taken(end);
  }

  // One without a port (a node that joins, a helper) is not missed once it has ended well.
  bool needed(int rank) const override {
    return spec_.members[static_cast<std::size_t>(rank)].port != 0;
  }

  bool finished() const override { return finished_; }

  void stop() override {
    if (stopped_) return;
    stopped_ = true;
    // The logs of those that still run say from here on what we do to them.
    for (std::size_t i = 0; i < logs_.size(); ++i) {
      if (ends_[i].pid == 0) logs_[i]->mark_end(finished_);
    }
    cancel_.cancel();
    if (thread_.joinable()) thread_.join();
    clocks_.clear();
    if (census_) {
      const CensusResult census = census_->stop();
      for (const std::string& store : census.cut) {
        sink_->add(make("store", {{"store", store}, {"path", ""}, {"status", "not watched whole"}},
                        asked().rank, trace::now_ns()));
      }
    }
  }

  void close(const RunEnd& end) override {
    for (std::size_t i = 0; i < logs_.size(); ++i) {
      const verdict::WorkerEnd& worker = ends_[i];
      explain::Ending ending;
      if (worker.pid != 0 && !worker.killed_by_us) {
        (worker.exited ? ending.exit_code : ending.signal) =
            worker.exited ? worker.exit_code : worker.signal;
      }
      ending.deadline = end.hung;
      ending.asked = end.finished || end.interrupted;
      logs_[i]->close(ending, worker.killed_by_us, served_);
    }
    if (end.interrupted) return;
    for (trace::Event& event : gpus_.settle(spec_.settle_s)) sink_->add(std::move(event));
  }

 private:
  const ServerMemberSpec& asked() const { return spec_.members[spec_.asked]; }

  trace::Event make(std::string ev, trace::json body, int rank, std::int64_t t_ns) const {
    trace::Event out;
    out.ev = std::move(ev);
    out.t_ns = t_ns;
    out.rank = rank;
    out.src = "http";
    out.source = "http:" + spec_.members[static_cast<std::size_t>(rank)].name;
    out.body = trace::Fields(body);
    return out;
  }

  // What is seen of this member from outside, whatever it prints.
  void hello(const ServerMemberSpec& member, const Started& worker) {
    std::vector<std::string> emits = {"ready", "http"};
    if (member.here) emits.insert(emits.end(), {"compile", "store"});
    if (member.rank == asked().rank) {
      for (const char* kind : {"request", "counter", "phase_begin", "phase_end"}) {
        emits.emplace_back(kind);
      }
    }
    sink_->add(make("hello",
                    {{"schema", "events/1.0"},
                     {"engine", spec_.preset.engine},
                     {"pid", worker.pid},
                     {"member", member.name},
                     {"emits", emits}},
                    worker.rank, worker.t_ns));
  }

  // Its own thread: from the first answer to the last.
  void serve() {
    Clocks& clocks = *clocks_[spec_.asked];
    // All of them: one that dies a moment after the answers of another has died while starting.
    for (const ServerMemberSpec& member : spec_.members) {
      const auto at = static_cast<std::size_t>(member.rank);
      if (member.port != 0 && !clocks_[at]->wait_ready()) return;
    }
    census_->ready(clocks.ready_ns());
    if (const std::int64_t captured = logs_[spec_.asked]->capture_end_ns(); captured != 0) {
      trace::Event event =
          make("ready", {{"clock", "capture"}, {"member", asked().name}}, asked().rank, captured);
      event.src = "log";
      event.res_ns = LogFollower::kResolution_ns;
      sink_->add(std::move(event));
    }
    const std::string listed = clocks.wait_model(kModelWait_s);
    WorkloadSpec work = spec_.workload;
    work.model = !spec_.model.empty() ? spec_.model : listed;
    phase("phase_begin", "");
    const std::optional<Metrics> before = metrics();
    const Emit emit = [this](trace::Event event) { sink_->add(std::move(event)); };
    WorkloadResult result = run_workload(work, emit, &cancel_);
    if (!result.cancelled && !any_ok(result) && !result.requests.empty() &&
        not_ready_yet(result.requests.front()) && wait_until_served(work)) {
      refused_ = result.requests.size();
      work.seed += 1;  // the prompts of the first try may be cached by now
      result = run_workload(work, emit, &cancel_);
    }
    served_ = any_ok(result);
    if (cancel_.cancelled()) return;
    const std::int64_t now = trace::now_ns();
    for (trace::Event& event : figure_events(result, asked().rank, now)) {
      if (refused_ > 0 && event.str("name") == "requests_failed") {
        event.body.set("value", event.real("value") + static_cast<double>(refused_));
      }
      sink_->add(std::move(event));
    }
    const auto deltas = compare_metrics(before, metrics(), spec_.preset.metric_names);
    for (trace::Event& event : metric_events(deltas, now)) {
      event.rank = asked().rank;
      sink_->add(std::move(event));
    }
    if (const auto steady = result.steady_ns()) {
      sink_->add(
          make("ready", {{"clock", "steady"}, {"member", asked().name}}, asked().rank, *steady));
    }
    clocks.ask_again("after the workload");
    phase("phase_end", failures(result));
    // The connection is closed a little before the process is seen to be gone. Wait for that: the
    // end of a server that died with a request in its hands is no end of ours.
    if (lost(result)) {
      pollfd watch{cancel_.fd(), POLLIN, 0};
      ::poll(&watch, 1, kDeathWait_ms);
    }
  }

  static bool lost(const WorkloadResult& result) {
    return std::any_of(result.requests.begin(), result.requests.end(), [](const RequestResult& r) {
      return r.end == HttpEnd::kClosed || r.end == HttpEnd::kRefused ||
             r.end == HttpEnd::kUnreachable;
    });
  }

  void phase(const char* ev, const std::string& reason) {
    trace::json body = {{"phase", "serve"}};
    if (std::string_view(ev) == "phase_end") body["status"] = reason.empty() ? "ok" : "failed";
    if (!reason.empty()) body["reason"] = reason;
    sink_->add(make(ev, std::move(body), asked().rank, trace::now_ns()));
  }

  // "" if all that were sent were served.
  static std::string failures(const WorkloadResult& result) {
    std::size_t failed = 0;
    const RequestResult* first = nullptr;
    for (const RequestResult& request : result.requests) {
      if (request.ok) continue;
      if (first == nullptr) first = &request;
      ++failed;
    }
    if (first == nullptr) return "";
    return fmt::format("{} of {} requests failed, first {}: {}", failed, result.requests.size(),
                       first->id, first->error.empty() ? "no reason given" : first->error);
  }

  // Nobody was served although it said that it was ready: does that change?
  bool wait_until_served(WorkloadSpec work) {
    work.groups = {{1, 1, 1, "greedy"}};
    work.say_first_token = false;
    work.limits.total_s = std::min(work.limits.total_s, spec_.patience_s);
    const std::int64_t begin = trace::now_ns();
    while (!cancel_.cancelled()) {
      const WorkloadResult probe = run_workload(
          work, [](trace::Event) {}, &cancel_);
      if (any_ok(probe)) return true;
      if (probe.requests.empty() || !not_ready_yet(probe.requests.front())) return false;
      const double waited = static_cast<double>(trace::now_ns() - begin) / 1e9;
      if (waited > spec_.patience_s) return false;
      pollfd watch{cancel_.fd(), POLLIN, 0};
      ::poll(&watch, 1, 50);
    }
    return false;
  }

  std::optional<Metrics> metrics() {
    return both(metrics_at(spec_.preset.metrics), metrics_at(spec_.preset.more_metrics));
  }

  std::optional<Metrics> metrics_at(const MetricsEndpoint& endpoint) {
    if (endpoint.kind == "none" || endpoint.path.empty()) return {};
    HttpRequest request;
    request.host = asked().host;
    request.port = asked().port;
    request.path = endpoint.path;
    HttpLimits limits;
    limits.first_byte_s = 5;
    limits.total_s = 10;
    limits.keep_bytes = 16 << 20;
    const HttpAnswer answer = http_call(request, limits, &cancel_);
    if (!answer.ok()) return {};
    return parse_metrics(endpoint.kind, answer.body);
  }

  // A server that dies while a stranger has its port was not at fault. Only where its own name is
  // known to be ours can the port be asked for.
  void port_taken(const verdict::WorkerEnd& end) {
    const ServerMemberSpec& member = spec_.members[static_cast<std::size_t>(end.rank)];
    if (member.port == 0 || end.signal != 0 || end.exit_code == 0) return;
    const auto listener = listener_of(member.host, member.port);
    if (!listener || listener->pid <= 0 || has_environment(listener->pid, marker_)) return;
    sink_->add(make("setup_error",
                    {{"message", fmt::format("port {} of {} is taken by {}", member.port,
                                             member.name, listener->text)}},
                    end.rank, trace::now_ns()));
  }

  ServerCompanionSpec spec_;
  GpuMemoryCheck gpus_;
  const explain::Grammars* grammars_;
  EventSink* sink_ = nullptr;
  std::string marker_;
  CancelToken cancel_;
  std::vector<std::unique_ptr<LogFollower>> logs_;  // by rank
  std::vector<std::unique_ptr<Clocks>> clocks_;     // by rank
  std::unique_ptr<Census> census_;
  std::vector<verdict::WorkerEnd> ends_;  // by rank; pid 0: it runs
  std::thread thread_;
  std::atomic<bool> finished_{false};
  std::size_t refused_ = 0;  // requests of a first try that came too early
  bool served_ = false;      // a request was: every member was up. Of thread_, read after its end
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<Companion> make_server_companion(ServerCompanionSpec spec,
                                                 const explain::Grammars* grammars) {
  return std::make_unique<ServerCompanion>(std::move(spec), grammars);
}

}  // namespace warmgate::target
