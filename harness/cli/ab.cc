#include "reports/ab.h"

#include <algorithm>

#include "harness/cli/commands.h"
#include "harness/cli/select.h"
#include "harness/cli/session.h"
#include "harness/cli/to_report.h"
#include "harness/run/judge.h"
#include "harness/run/reproduce.h"
#include "harness/verdict/expectation.h"

namespace warmgate::cli {
namespace {

// The two variants to compare, by name: those asked for, else the scenario's first two.
std::vector<std::string> sides_of(const scenario::Scenario& scenario, const CommandLine& line) {
  const auto refuse = [&](std::string message) {
    throw scenario::ScenarioError({{scenario.path.string(), 0, 0, "", std::move(message)}});
  };
  if (line.sides.empty()) {
    if (scenario.variants.size() < 2)
      refuse("ab compares two variants; the scenario has one, " + scenario.variants.front().name);
    return {scenario.variants[0].name, scenario.variants[1].name};
  }
  std::vector<std::string> out;
  for (const std::string& name : line.sides) {
    const auto found = select_variants(scenario, {name});
    if (found.size() > 1)
      refuse("'" + name + "' is several variants; name one, e.g. '" + found.front()->name + "'");
    out.push_back(found.front()->name);
  }
  if (out[0] == out[1]) refuse("ab compares two variants, not '" + out[0] + "' with itself");
  return out;
}

std::vector<const verdict::RunRecord*> runs_of(const run::VariantResult& variant) {
  std::vector<const verdict::RunRecord*> out;
  for (const verdict::RunRecord& run : variant.runs) out.push_back(&run);
  return out;
}

}  // namespace

int ab_command(const CommandLine& line, Console& console) {
  check_outputs(line);
  const std::filesystem::path file = line.paths.front();
  run::Options options = line.run;
  options.variants = sides_of(scenario::load_scenario(file, line.run.load), line);
  run::GateResult result = execute({file}, options, line, console);
  run::ScenarioResult& s = result.scenarios.at(0);
  // run_scenarios() keeps the file's order; here A is the one that was named first.
  std::sort(s.variants.begin(), s.variants.end(), [&](const auto& x, const auto& y) {
    return x.variant.name == options.variants[0] && y.variant.name != options.variants[0];
  });
  if (s.variants.size() >= 2) {
    const verdict::Accepted accepted = verdict::read_accepted(s.scenario.accepted_path());
    verdict::GateContext gate;
    gate.rules = &s.scenario.gate;
    gate.accepted = accepted.find(s.variants[1].variant.name);
    gate.allow = &s.scenario.allow;
    gate.today = options.today.empty() ? run::today_utc() : options.today;
    verdict::RunVerdict judged =
        verdict::judge_ab(runs_of(s.variants[0]), runs_of(s.variants[1]), gate,
                          {s.variants[0].variant.name, s.variants[1].variant.name});
    s.verdict = result.verdict = judged.verdict;
    s.reason = std::move(judged.reason);
    s.checks = std::move(judged.checks);
  }
  // A side that the machine kept from being seen leaves nothing to compare, and is worth a retry.
  for (const run::VariantResult& side : s.variants) {
    if (result.verdict == verdict::Verdict::kInconclusive &&
        side.verdict.verdict == verdict::Verdict::kInfra)
      s.verdict = result.verdict = verdict::Verdict::kInfra;
  }
  const int code = exit_code_of({result.verdict}, result.interrupted, line);
  reports::Report report = to_report(result, line, code);
  report.call["sides"] = options.variants;
  if (line.run.bundle.empty())
    report.command = run::shell_line(
        {run::program_name(), "ab", file.string(), options.variants[0], options.variants[1]});
  return deliver(report, reports::ab_report(report, report_style(line, console), line.detail), code,
                 line, console, &result);
}

}  // namespace warmgate::cli
