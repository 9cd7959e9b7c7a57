#include "harness/cli/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "harness/cli/github.h"
#include "harness/cli/output_file.h"
#include "harness/run/kept.h"
#include "reports/buildkite.h"
#include "reports/json.h"
#include "reports/junit.h"
#include "reports/markdown.h"
#include "reports/status_line.h"

namespace warmgate::cli {
namespace {

std::atomic<target::CancelToken*> cancel_on_signal{nullptr};

extern "C" void on_signal(int) {
  target::CancelToken* token = cancel_on_signal.load();
  // The second time the user means it: workers die with us (parent-death signal).
  if (!token || token->cancelled()) ::_exit(130);
  token->cancel();
}

// SIGINT, SIGTERM and SIGHUP cancel the token while this lives.
class SignalScope {
 public:
  explicit SignalScope(target::CancelToken& token) {
    cancel_on_signal.store(&token);
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < kCount; ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      // One that our parent had us ignore (nohup, a background job) stays ignored.
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~SignalScope() {
    for (std::size_t i = 0; i < kCount; ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
    cancel_on_signal.store(nullptr);
  }
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

 private:
  static constexpr std::size_t kCount = 3;
  static constexpr int kSignals[kCount] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[kCount] {};
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Moves the elapsed time of a status line along while nothing else happens.
class Ticker {
 public:
  explicit Ticker(reports::StatusLine& status)
      : thread_([this, &status] {
          std::unique_lock lock(mutex_);
          while (!woken_.wait_for(lock, std::chrono::milliseconds(250), [this] { return done_; }))
            status.tick();
        }) {}
  ~Ticker() {
    {
      const std::scoped_lock lock(mutex_);
      done_ = true;
    }
    woken_.notify_one();
    thread_.join();
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace

void watched(const CommandLine& line, Console& console,
             const std::function<void(target::CancelToken&, const run::Progress&)>& work) {
  target::CancelToken cancel;
  const SignalScope signals(cancel);
  if (line.detail == reports::Detail::kQuiet) {
    work(cancel, {});
    return;
  }
  reports::StatusLine status(
      {.terminal = console.err_is_terminal(),
       .style = console.err_style(),
       .quiet_s = 1,
       .plain_s = 5,
       .rewrite_s = 0.05},
      [&](std::string_view text) { console.err(text); }, seconds_now);
  const Ticker ticker(status);
  work(cancel, [&](const run::Status& now) {
    std::string text = fmt::format("{}/{} runs", now.done, now.total);
    if (!now.scenario.empty()) text += "  " + now.scenario;
    if (!now.variant.empty()) text += " " + now.variant;
    if (!now.phase.empty()) text += ": " + now.phase;
    status.update(std::move(text));
  });
}

run::GateResult execute(const std::vector<std::filesystem::path>& files,
                        const run::Options& options, const CommandLine& line, Console& console) {
  run::GateResult result;
  watched(line, console, [&](target::CancelToken& cancel, const run::Progress& progress) {
    result = run::run_scenarios(files, options, cancel, progress);
  });
  return result;
}

run::GateResult execute(std::vector<scenario::Scenario> scenarios, const run::Options& options,
                        const CommandLine& line, Console& console) {
  run::GateResult result;
  watched(line, console, [&](target::CancelToken& cancel, const run::Progress& progress) {
    result = run::run_loaded(std::move(scenarios), options, cancel, progress);
  });
  return result;
}

namespace {

void keep(const reports::Report& report, const run::GateResult& result, const std::string& json,
          const CommandLine& line) {
  run::Kept kept;
  kept.call = report.call;
  kept.environment = report.machine;
  kept.report = json;
  kept.command = report.command;
  kept.secrets = report.secrets;
  for (const run::ScenarioResult& each : result.scenarios) kept.scenarios.push_back(&each.scenario);
  kept.runs = run::kept_runs(result);
  run::write_kept(line.run.keep, kept);
}

}  // namespace

int exit_code_of(const std::vector<verdict::Verdict>& verdicts, bool interrupted,
                 const CommandLine& line) {
  if (interrupted) return 130;
  std::vector<verdict::Verdict> kept;
  for (const verdict::Verdict v : verdicts)
    kept.push_back(line.soft.count(v) > 0 ? verdict::Verdict::kPass : v);
  return run::exit_code(kept, line.allow_skip);
}

reports::Style report_style(const CommandLine& line, const Console& console) {
  return line.json == "-" || line.buildkite == "-" ? console.err_style() : console.out_style();
}

int deliver(const reports::Report& report, const std::string& text, int code,
            const CommandLine& line, Console& console, const run::GateResult* result) {
  bool failed = false;
  const auto attempt = [&](auto&& write) {
    try {
      write();
    } catch (const std::exception& e) {
      console.complain(e.what());
      failed = true;
    }
  };
  for (const std::string& error : report.output_errors) {
    console.complain(error);
    failed = true;
  }
  if (!line.markdown.empty())
    attempt([&] { write_file(line.markdown, reports::markdown_report(report)); });
  if (!line.junit.empty()) attempt([&] { write_file(line.junit, reports::junit_text(report)); });
  const std::string json =
      line.json.empty() && line.run.keep.empty() ? "" : reports::json_text(report);
  if (!line.json.empty() && line.json != "-") attempt([&] { write_file(line.json, json); });
  if (!line.buildkite.empty() && line.buildkite != "-")
    attempt([&] { write_file(line.buildkite, reports::buildkite_annotation(report)); });
  if (!line.run.keep.empty() && result != nullptr)
    attempt([&] { keep(report, *result, json, line); });
  // One of them has stdout; what is for people goes where nothing reads it.
  if (line.json == "-") {
    console.out(json);
    console.err(text);
  } else if (line.buildkite == "-") {
    console.out(reports::buildkite_annotation(report));
    console.err(text);
  } else {
    console.out(text);
  }
  attempt([&] { tell_github(report, line, console); });
  if (!console.out_error().empty()) {
    console.complain(console.out_error());
    failed = true;
  }
  return failed && code != 1 && code != 130 ? 4 : code;
}

}  // namespace warmgate::cli
