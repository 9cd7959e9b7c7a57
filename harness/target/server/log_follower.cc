#include "harness/target/server/log_follower.h"

#include <utility>

#include "harness/trace/vocabulary.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

using explain::Said;

constexpr std::size_t kMostWorkers = 256, kMostCauses = 500, kMostSkips = 500;

// weights_gib and its like in bytes, where we have such a figure.
std::optional<std::pair<std::string, double>> in_our_words(const std::string& name, double value) {
  if (trace::find_figure(name) != nullptr) return std::pair(name, value);
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"_gib", 1024.0 * 1024 * 1024}, {"_mib", 1024.0 * 1024}, {"_gb", 1e9}};
  for (const auto& [suffix, factor] : kUnits) {
    if (!name.ends_with(suffix)) continue;
    const std::string ours = name.substr(0, name.size() - suffix.size()) + "_bytes";
    if (trace::find_figure(ours) != nullptr) return std::pair(ours, value * factor);
  }
  return std::nullopt;
}

}  // namespace

LogFollower::LogFollower(const explain::Grammars* grammars, LogMember member, EventSink& sink)
    : member_(std::move(member)), sink_(sink) {
  if (grammars == nullptr) return;
  reader_ = std::make_unique<explain::Reader>(*grammars, explain::Options{member_.grammar});
  reader_->on_said([this](const Said& s) { said(s); });
}

LogFollower::~LogFollower() = default;

void LogFollower::feed(std::string_view stream, std::string_view bytes, std::int64_t t_ns) {
  if (!reader_) return;
  if (first_ns_ == 0) first_ns_ = t_ns;
  last_ns_ = t_ns;
  auto source = sources_.find(stream);
  if (source == sources_.end()) {
    const std::string name = member_.name + "/" + std::string(stream);
    source = sources_.emplace(std::string(stream), reader_->add_source(name)).first;
  }
  reader_->feed(source->second, bytes, t_ns);
}

trace::Event LogFollower::event(std::string ev, trace::json body, std::int64_t t_ns) const {
  trace::Event out;
  out.ev = std::move(ev);
  out.t_ns = t_ns;
  out.rank = member_.rank;
  out.src = "log";
  out.source = "log:" + member_.name;
  out.res_ns = kResolution_ns;
  out.body = trace::Fields(body);
  return out;
}

std::optional<int> LogFollower::rank_of(std::optional<int> printed) const {
  return member_.alone && printed ? printed : std::optional<int>(member_.rank);
}

void LogFollower::said(const Said& said) {
  const std::int64_t t = said.t_ns >= 0 ? said.t_ns : trace::now_ns();
  // Its last words are nearer to its end than the first of whatever follows.
  const bool news = said.what == Said::What::kProgress || said.what == Said::What::kFigure;
  if (news && said.phase == "capture") capture_end_ns_ = t;
  switch (said.what) {
    case Said::What::kPhaseBegin:
      return phase(said, true);
    case Said::What::kPhaseEnd:
      return phase(said, false);
    case Said::What::kSkip:
      if (++skips_ <= kMostSkips) {
        sink_.add(event("skip", {{"step", said.text}, {"reason", "the log says so"}}, t));
      }
      return;
    case Said::What::kCause:
      if (causes_.size() < kMostCauses) causes_[{said.source, said.line}] = t;
      return;
    case Said::What::kCompile:
      if (!ended_by_us_) {
        sink_.add(event("compile",
                        {{"kernel", said.text},
                         {"key", "log:" + said.text},
                         {"arch", ""},
                         {"source", "compiler"},
                         {"status", "ok"},
                         {"phase", "serve"}},
                        t));
      }
      return;
    case Said::What::kReady:
      said_ready_ = said_ready_ || !ended_by_us_;
      if (!ended_by_us_) sink_.add(event("ready", {{"clock", "log"}}, t));
      return;
    default:
      return;
  }
}

// Several workers print into one log, each in its own phase; what is said twice is said once.
void LogFollower::phase(const Said& said, bool begins) {
  if (ended_by_us_ && begins) return;
  if (phases_.size() >= kMostWorkers && phases_.count(said.worker) == 0) return;
  const std::int64_t t = said.t_ns >= 0 ? said.t_ns : trace::now_ns();
  std::string& now = phases_[said.worker];
  if (begins ? now == said.phase : now != said.phase) return;
  // Logs announce what begins; who is in the next phase has left the one before.
  if (!now.empty()) phase_event(false, now, said, t);
  now = begins ? said.phase : "";
  if (begins) phase_event(true, now, said, t);
}

void LogFollower::phase_event(bool begins, const std::string& phase, const Said& said,
                              std::int64_t t) {
  trace::json body = {{"phase", phase}};
  if (!said.worker.empty()) body["worker"] = said.worker;
  if (said.rank) body["worker_rank"] = *said.rank;
  if (!begins) body["status"] = "ok";
  if (!begins && phase == "capture" && capture_end_ns_ == 0) capture_end_ns_ = t;
  sink_.add(event(begins ? "phase_begin" : "phase_end", std::move(body), t));
}

void LogFollower::mark_end(bool well) {
  if (!reader_ || ended_by_us_) return;
  explain::Ending ending;
  ending.asked = well;
  ending.deadline = !well;
  before_end_ = reader_->so_far(ending);
  if (well) close_phases(trace::now_ns());
  ended_by_us_ = true;
}

void LogFollower::close_phases(std::int64_t t_ns) {
  for (auto& [worker, phase] : phases_) {
    if (phase.empty()) continue;
    trace::json body = {{"phase", phase}, {"status", "ok"}, {"inferred", true}};
    if (!worker.empty()) body["worker"] = worker;
    sink_.add(event("phase_end", std::move(body), t_ns));
    phase.clear();
  }
}

void LogFollower::figures(const explain::Reading& reading, std::int64_t t_ns) {
  for (const auto& [name, value] : reading.figures) {
    if (!value.is_number()) continue;
    const auto ours = in_our_words(name, value.get<double>());
    if (!ours) continue;
    sink_.add(
        event("counter", {{"name", ours->first}, {"value", ours->second}, {"log", name}}, t_ns));
  }
}

void LogFollower::fault(const explain::Reading& reading) {
  const bool broke = reading.outcome == "crashed" || reading.outcome == "failed";
  if (!broke || !reading.fingerprint || reading.fingerprint->type.empty()) return;
  std::int64_t t = last_ns_;
  std::optional<double> log_s;  // by the log's own clock, as this machine's would say it
  for (const explain::Moment& moment : reading.moments) {
    if (moment.sort != "cause") continue;
    const auto arrived = causes_.find({moment.source, moment.line});
    if (arrived != causes_.end()) t = arrived->second;
    if (moment.at_s) log_s = *moment.at_s - member_.clock_offset_s;
    break;
  }
  trace::json body = {{"type", reading.fingerprint->type},
                      {"message", reading.message},
                      {"function", reading.fingerprint->function},
                      {"file", reading.fingerprint->file}};
  if (reading.failing_phase) body["phase"] = *reading.failing_phase;
  if (reading.failing_worker) body["worker"] = *reading.failing_worker;
  if (!member_.alone) body["member"] = member_.name;
  if (log_s) body["log_s"] = *log_s;
  trace::json& stack = body["stack"] = trace::json::array();
  for (const explain::Fingerprint& frame : reading.frames) {
    stack.push_back({{"function", frame.function}, {"file", frame.file}});
  }
  trace::Event out = event("fault", std::move(body), t);
  out.rank = rank_of(reading.failing_rank);
  sink_.add(std::move(out));
}

void LogFollower::close(const explain::Ending& ending, bool ours, bool started) {
  if (!reader_) return;
  // What it said after our signal is no cause of anything.
  const explain::Reading whole = reader_->finish(ending);
  const explain::Reading& reading = ours && before_end_ ? *before_end_ : whole;
  const std::int64_t t = last_ns_ != 0 ? last_ns_ : trace::now_ns();
  if (reading.engine.empty()) return;  // nobody knows what this log would have said
  sink_.add(event("hello",
                  {{"schema", "events/1.0"},
                   {"engine", reading.engine},
                   {"pid", 0},
                   {"log", member_.name},
                   {"clock_offset_s", member_.clock_offset_s},
                   {"times", "arrival"},
                   {"emits", {"phase_begin", "phase_end", "skip", "fault", "ready"}}},
                  first_ns_));
  figures(reading, t);
  // Where it stood when we ended it is no phase that it failed in.
  const std::string failing = ours ? "" : reading.failing_phase.value_or("");
  const bool up =
      failing.empty() || failing == "ready" || failing == "serve" || failing == "shutdown";
  if ((started || said_ready_) && up) close_phases(t);
  fault(reading);
  trace::json body = explain::to_json(reading);
  for (const char* bulky : {"moments", "unplaced_lines", "phases"}) body.erase(bulky);
  body["member"] = member_.name;
  sink_.add(event("reading", std::move(body), t));
  reader_.reset();
}

}  // namespace warmgate::target
