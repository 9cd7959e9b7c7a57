#include "harness/run/watch/watch.h"

#include <unistd.h>

#include <map>
#include <memory>

#include "harness/contract/builtin.h"
#include "harness/contract/view.h"
#include "harness/explain/reader.h"
#include "harness/run/inject.h"
#include "harness/run/run_dir.h"
#include "harness/run/secrets.h"
#include "harness/run/spans.h"
#include "harness/scenario/problems.h"
#include "harness/target/companion.h"
#include "harness/target/server/log_follower.h"
#include "harness/trace/secrets.h"
#include "harness/trace/span_phases.h"
#include "harness/trace/wire.h"
#include "harness/verdict/figures.h"
#include "harness/verdict/outcome.h"

namespace warmgate::run {
namespace {

constexpr double kNever_s = 1e8;
constexpr std::size_t kLongestLine = 64 * 1024;

// Reads what the command prints: as the log of an engine, where it is one, and for the user's own
// word of ready.
class OutputReader : public target::Companion {
 public:
  OutputReader(const WatchOptions& options, const explain::Grammars* grammars,
               const std::function<void(std::string_view)>& print)
      : options_(options), grammars_(grammars), print_(print) {}

  void prepare(target::EventSink& sink, const std::string&) override {
    sink_ = &sink;
    follower_.emplace(grammars_, target::LogMember{"command", 0, true, "", 0}, sink);
  }
  void started(const target::Started&) override {}
  void start() override {}
  void output(int, std::string_view stream, std::string_view bytes, std::int64_t t_ns) override {
    follower_->feed(stream, bytes, t_ns);
    std::string& rest = rests_[std::string(stream)];
    rest += bytes;
    for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
      whole_line(std::string_view(rest).substr(0, end), t_ns);
    // A prompt without an end of line says ready as well.
    if (!options_.ready_text.empty() && !ready_ && rest.find(options_.ready_text) != rest.npos)
      say_ready(t_ns);
    if (rest.size() > kLongestLine) end_line(rest, t_ns);  // in pieces
  }
  void ended(const verdict::WorkerEnd& end) override { end_ = end; }
  bool needed(int) const override { return false; }
  bool finished() const override { return finished_; }
  void finish() {
    finished_ = true;
    sink_->wake();
  }
  void stop() override { follower_->mark_end(ready_ || finished_); }
  void close(const target::RunEnd& end) override {
    flush();
    explain::Ending how;
    if (end_ && end_->signal == 0) how.exit_code = end_->exit_code;
    if (end_ && end_->signal != 0) how.signal = end_->signal;
    how.deadline = end.hung;
    how.asked = end.finished || end.interrupted;
    follower_->close(how, end.finished || end.interrupted || end.hung, ready_);
  }

 private:
  // What was printed without an end of line.
  void flush() {
    for (auto& [stream, rest] : rests_) end_line(rest, trace::now_ns());
  }

  void end_line(std::string& rest, std::int64_t t_ns) {
    if (!rest.empty()) whole_line(rest, t_ns);
    rest.clear();
  }

  void whole_line(std::string_view text, std::int64_t t_ns) {
    if (options_.output && print_) print_(text);
    if (options_.ready_text.empty() || ready_ || text.find(options_.ready_text) == text.npos)
      return;
    say_ready(t_ns);
  }

  void say_ready(std::int64_t t_ns) {
    ready_ = true;
    trace::Event event;
    event.ev = "ready";
    event.t_ns = t_ns;
    event.src = "log";
    event.source = "log:command";
    event.body = {{"clock", "log"}};
    sink_->add(std::move(event));
  }

  const WatchOptions& options_;
  const explain::Grammars* grammars_;
  const std::function<void(std::string_view)>& print_;
  target::EventSink* sink_ = nullptr;
  std::optional<target::LogFollower> follower_;
  std::map<std::string, std::string> rests_;
  std::optional<verdict::WorkerEnd> end_;
  bool ready_ = false, finished_ = false;
};

// Phases that were under way when we ended it for having seen enough are over, not failed.
void close_phases(trace::Trace& trace) {
  std::map<std::pair<std::string, std::string>, trace::Event> open;
  for (const trace::Event& e : trace.events) {
    const std::pair key(e.source, e.str("phase"));
    if (e.ev == "phase_begin") open[key] = e;
    if (e.ev == "phase_end") open.erase(key);
  }
  for (auto& [key, begun] : open) {
    trace::Event end = begun;
    end.ev = "phase_end";
    end.t_ns = trace.events.back().t_ns;
    end.body = {{"phase", key.second}, {"status", "ok"}, {"inferred", true}};
    trace.events.push_back(std::move(end));
  }
}

// A foreign program owes no word of ours, so what judges those words is left out.
void judge_watched(verdict::RunRecord& run, const verdict::RunFacts& facts, bool ended_by_us) {
  const contract::Context over{run.trace, nullptr};
  for (const contract::Contract* contract : contract::builtin_contracts()) {
    // Nor can one that is ended in the middle clear away what it would have.
    if (contract->name() == "protocol" ||
        (ended_by_us && contract->name() == "nothing-left-behind"))
      continue;
    run.contracts.push_back(contract::judge(*contract, over));
  }
  verdict::classify(facts, contract::view_of(over), run);
  verdict::collect_figures(contract::view_of(over), run);
}

}  // namespace

std::vector<std::string> secrets_of(const WatchOptions& options) {
  scenario::Scenario only;  // what is known of secrets is asked of scenarios
  only.variants.emplace_back();
  only.variants.front().target.argv = options.argv;
  return known_secrets({&only}, {});
}

Watched watch(const WatchOptions& options, const target::CancelToken& cancel,
              const std::function<void(const LiveLine&)>& say,
              const std::function<void(std::string_view)>& print) {
  if (options.argv.empty() || options.argv.front().empty())
    throw std::invalid_argument("no command after --");
  std::vector<scenario::Problem> problems;
  for (std::string& wrong : wrong_with(options.probes))
    problems.push_back({"--probe", 0, 0, "", std::move(wrong)});
  if (!problems.empty()) throw scenario::ScenarioError(std::move(problems));

  std::optional<explain::Grammars> grammars;
  if (explain::available()) grammars = explain::Grammars::standard(options.fixtures);
  const RunDir dir("watch");
  target::TargetSpec spec;
  spec.name = options.argv.front();
  spec.run_dir = dir.path();
  spec.secrets = secrets_of(options);
  spec.deadlines.default_phase_s = spec.deadlines.silence_s = kNever_s;
  spec.deadlines.total_s = options.timeout_s ? *options.timeout_s : kNever_s;
  spec.deadlines.settle_s = 5;
  target::WorkerSpec worker;
  worker.argv = options.argv;
  worker.cwd = std::filesystem::current_path().string();
  spec.workers.push_back(std::move(worker));
  inject(options.probes, spec);
  OutputReader reader(options, grammars ? &*grammars : nullptr, print);
  spec.companion = &reader;
  std::unique_ptr<target::Companion> spans;
  if (asked_for(options.probes, "spans")) spans = receive_spans({}, spec);

  Live live(trace::now_ns());
  spec.on_event = [&](const trace::Event& event) {
    const bool before = live.all_ready();
    for (const LiveLine& line : live.take(event)) say(line);
    if (!before && live.all_ready() && options.until_ready) reader.finish();
  };
  target::TargetResult result = target::run_target(spec, cancel);

  Watched out;
  out.ready_s = live.ready_s();
  out.interrupted = result.interrupted;
  out.secrets = spec.secrets;
  out.secrets.insert(out.secrets.end(), result.secrets.begin(), result.secrets.end());
  out.secrets = trace::spellings(std::move(out.secrets));
  verdict::RunFacts facts;
  facts.workers = std::move(result.workers);
  facts.outputs = std::move(result.outputs);
  // Whoever looks on may have said how long: what was ready by then has not hung.
  const bool enough = result.hung && out.ready_s && options.timeout_s;
  facts.hung = result.hung && !enough;
  facts.hang_kind = result.hang_kind;
  facts.hang_phase = result.hang_phase;
  facts.infra_error = result.infra_error;
  // Whoever looks on ends it when he has seen enough: that is no failure of what was ready.
  facts.interrupted = result.interrupted && !out.ready_s;
  out.run.scenario = "watch";
  out.never_ready = !out.ready_s && (options.until_ready || !options.ready_text.empty());
  out.run.wall_s = result.wall_s;
  out.run.trace = std::move(result.trace);
  const bool ended_by_us = result.finished || enough || (result.interrupted && out.ready_s);
  if (ended_by_us) close_phases(out.run.trace);
  if (enough) {
    std::erase_if(out.run.trace.events, [](const trace::Event& e) {
      return e.ev == "deadline" || e.ev == "hang" || e.ev == "stack";
    });
  }
  if (!options.probes.empty())
    out.run.trace.events.push_back(
        trace::harness_event("probe", {{"status", "asked"}, {"probes", options.probes}}));
  trace::merge_spans(out.run.trace, out.ready_s.has_value());
  judge_watched(out.run, facts, ended_by_us);
  return out;
}

}  // namespace warmgate::run
