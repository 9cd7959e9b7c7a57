#include <algorithm>

#include "harness/cli/commands.h"
#include "harness/cli/problems_text.h"
#include "harness/cli/session.h"
#include "harness/cli/to_report.h"

namespace warmgate::cli {
namespace {

namespace fs = std::filesystem;

bool has_tag(const scenario::Scenario& scenario, const std::vector<std::string>& tags) {
  return std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) {
    return std::find(scenario.tags.begin(), scenario.tags.end(), tag) != scenario.tags.end();
  });
}

// The files to run: those with a wanted tag and, with --keep-going, those that load. What is wrong
// with the others is said at once.
std::vector<fs::path> choose(const std::vector<fs::path>& files, const CommandLine& line,
                             Console& console, bool& broken) {
  if (line.tags.empty() && !line.keep_going) return files;
  std::vector<fs::path> out;
  std::vector<scenario::Problem> problems;
  for (const fs::path& file : files) {
    try {
      const scenario::Scenario loaded = scenario::load_scenario(file, line.run.load);
      if (line.tags.empty() || has_tag(loaded, line.tags)) out.push_back(file);
    } catch (const scenario::ScenarioError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  broken = !problems.empty();
  if (!broken) return out;
  const scenario::ScenarioError all(std::move(problems));
  if (!line.keep_going) throw all;
  console.err(problems_text(all, console.err_style()));
  return out;
}

}  // namespace

int gate_command(const CommandLine& line, Console& console) {
  check_outputs(line);
  bool broken = false;
  const std::vector<fs::path> files =
      choose(scenario::find_scenarios(line.paths), line, console, broken);
  run::GateResult result;
  if (files.empty()) {
    console.complain(line.tags.empty() ? "no scenario is left to run"
                                       : "no scenario has one of these tags");
    result.verdict = verdict::Verdict::kSkip;  // nothing was judged; the report says so too
  } else {
    run::Options options = line.run;
    options.skip_unfit = true;
    result = execute(files, options, line, console);
  }
  std::vector<verdict::Verdict> verdicts;
  for (const run::ScenarioResult& s : result.scenarios) verdicts.push_back(s.verdict);
  int code = exit_code_of(verdicts, result.interrupted, line);
  if (broken && code != 130) code = 2;
  const reports::Report report = to_report(result, line, code);
  return deliver(report, terminal_report(report, report_style(line, console), line.detail), code,
                 line, console);
}

}  // namespace warmgate::cli
