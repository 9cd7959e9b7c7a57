#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/cli/to_report.h"
#include "harness/run/bundle.h"

namespace warmgate::cli {

namespace {

// The call that made the bundle, with what this one asks for over it.
int repeat_bundle(const CommandLine& line, Console& console) {
  const run::OpenBundle bundle = run::open_bundle(line.paths.front());
  for (const std::string& note : bundle.notes) console.complain(line.paths.front() + ": " + note);
  run::refuse_missing(bundle, line.paths.front());
  CommandLine inner = line;
  inner.run.bundle = bundle.options.bundle;
  inner.paths.clear();
  for (const auto& file : bundle.scenarios) inner.paths.push_back(file.string());
  run::Options& run = inner.run;
  const run::Options& then = bundle.options;
  run.load.fixtures = then.load.fixtures;
  run.load.overlays.insert(run.load.overlays.begin(), then.load.overlays.begin(),
                           then.load.overlays.end());
  if (run.load.device.empty()) run.load.device = then.load.device;
  if (run.jit == jit::Backend::kAuto) run.jit = then.jit;
  if (!run.timeout_s) run.timeout_s = then.timeout_s;
  if (run.repeat == 1) run.repeat = then.repeat;
  if (run.jobs == 0) run.jobs = then.jobs;
  if (run.today.empty()) run.today = then.today;
  if (run.probes.empty()) run.probes = then.probes;
  run.expect = run.expect && then.expect;
  run.no_cache = run.no_cache || (then.no_cache && run.cache_dir.empty());
  run.metrics.insert(run.metrics.begin(), then.metrics.begin(), then.metrics.end());
  run.contracts.insert(run.contracts.begin(), then.contracts.begin(), then.contracts.end());
  // One variant of a comparison is a run.
  inner.command = run.variants.empty() ? bundle.verb : bundle.verb == "ab" ? "run" : bundle.verb;
  if (run.variants.empty()) run.variants = then.variants;
  if (inner.command == "ab") inner.sides = bundle.sides;
  if (inner.command == "ab") return ab_command(inner, console);
  if (inner.command == "gate") return gate_command(inner, console);
  return run_command(inner, console);
}

}  // namespace

int run_command(const CommandLine& line, Console& console) {
  if (line.run.bundle.empty() && run::is_bundle(line.paths.front()))
    return repeat_bundle(line, console);
  run::Options options = line.run;
  options.verb = "run";
  const run::GateResult result = execute({line.paths.front()}, options, line, console);
  const int code = exit_code_of({result.verdict}, result.interrupted, line);
  const reports::Report report = to_report(result, line, code);
  return deliver(report, terminal_report(report, report_style(line, console), line.detail), code,
                 line, console, &result);
}

}  // namespace warmgate::cli
