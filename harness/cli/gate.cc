#include <algorithm>
#include <iostream>
#include <iterator>
#include <optional>

#include "harness/cli/changed.h"
#include "harness/cli/commands.h"
#include "harness/cli/github.h"
#include "harness/cli/problems_text.h"
#include "harness/cli/select.h"
#include "harness/cli/session.h"
#include "harness/cli/to_report.h"

namespace warmgate::cli {
namespace {

namespace fs = std::filesystem;
using run::ScenarioResult;
using scenario::Scenario;

bool has_tag(const Scenario& scenario, const std::vector<std::string>& tags) {
  return tags.empty() || std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) {
           return std::find(scenario.tags.begin(), scenario.tags.end(), tag) != scenario.tags.end();
         });
}

bool has_variant(const Scenario& scenario, const std::string& name) {
  return std::any_of(
      scenario.variants.begin(), scenario.variants.end(),
      [&](const scenario::Variant& v) { return v.name == name || v.base_name == name; });
}

// Those with a wanted tag and, with --keep-going, those that load. What is wrong with the others is
// said at once.
std::vector<Scenario> load(const CommandLine& line, Console& console, bool& broken) {
  const scenario::LoadOptions options = run::load_options(line.run);
  std::vector<Scenario> out;
  std::vector<scenario::Problem> problems;
  for (const fs::path& file : scenario::find_scenarios(line.paths)) {
    try {
      Scenario loaded = scenario::load_scenario(file, options);
      if (has_tag(loaded, line.tags)) out.push_back(std::move(loaded));
    } catch (const scenario::ScenarioError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  broken = !problems.empty();
  if (!broken) return out;
  const scenario::ScenarioError all(std::move(problems));
  if (!line.keep_going) throw all;
  console.err(problems_text(all, console.err_style()));
  tell_github(all, line, console);
  return out;
}

ScenarioResult skipped(Scenario scenario, std::string reason) {
  ScenarioResult out;
  out.scenario = std::move(scenario);
  out.verdict = verdict::Verdict::kSkip;
  out.reason = std::move(reason);
  return out;
}

// A gate over the scenarios that changed files ask for: the others are in the result as skipped, in
// the order in which they were found.
class ChangedGate {
 public:
  ChangedGate(std::vector<Scenario> all, const ChangedFiles& changed, const CommandLine& line)
      : options_(line.run), names_(line.run.variants) {
    refuse_unknown(all);
    std::vector<fs::path> shared = line.run.metrics;
    shared.insert(shared.end(), line.run.contracts.begin(), line.run.contracts.end());
    for (Scenario& scenario : all) {
      const Selection selection = select(scenario, changed, shared);
      const bool asked =
          names_.empty() || std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
            return has_variant(scenario, name);
          });
      takes_.push_back(selection.runs && asked);
      why_.push_back(selection.why);
      if (takes_.back()) {
        taken_.push_back(std::move(scenario));
      } else {
        passed_over_.push_back(
            skipped(std::move(scenario),
                    selection.runs ? "none of its variants was asked for" : selection.why));
      }
    }
    // A name that only scenarios which are passed over have is no slip.
    std::erase_if(options_.variants, [&](const std::string& name) {
      return std::none_of(taken_.begin(), taken_.end(),
                          [&](const Scenario& s) { return has_variant(s, name); });
    });
  }

  const std::vector<Scenario>& taken() const { return taken_; }
  const run::Options& options() const { return options_; }

  void merge(run::GateResult& result) {
    std::vector<ScenarioResult> ran = std::move(result.scenarios);
    result.scenarios.clear();
    std::size_t next_ran = 0, next_passed = 0;
    for (std::size_t i = 0; i < takes_.size(); ++i) {
      std::vector<ScenarioResult>& from = takes_[i] ? ran : passed_over_;
      std::size_t& next = takes_[i] ? next_ran : next_passed;
      if (next >= from.size()) continue;
      result.scenarios.push_back(std::move(from[next++]));
      result.scenarios.back().selection = why_[i];
    }
    std::vector<verdict::Verdict> verdicts;
    for (const ScenarioResult& s : result.scenarios) verdicts.push_back(s.verdict);
    result.verdict = verdict::worst(verdicts);
  }

 private:
  void refuse_unknown(const std::vector<Scenario>& all) const {
    for (const std::string& name : names_) {
      const bool known = std::any_of(all.begin(), all.end(),
                                     [&](const Scenario& s) { return has_variant(s, name); });
      // Says which there are, of the first scenario at least.
      if (!known && !all.empty()) (void)select_variants(all.front(), {name});
    }
  }

  run::Options options_;
  std::vector<std::string> names_;
  std::vector<Scenario> taken_;
  std::vector<ScenarioResult> passed_over_;
  std::vector<bool> takes_;
  std::vector<std::string> why_;
};

int finish(run::GateResult& result, bool broken, const CommandLine& line, Console& console) {
  std::vector<verdict::Verdict> verdicts;
  for (const ScenarioResult& s : result.scenarios) verdicts.push_back(s.verdict);
  int code = exit_code_of(verdicts, result.interrupted, line);
  if (broken && code != 130) code = 2;
  const reports::Report report = to_report(result, line, code);
  return deliver(report, terminal_report(report, report_style(line, console), line.detail), code,
                 line, console, &result);
}

}  // namespace

int gate_command(const CommandLine& line, Console& console) {
  std::optional<ChangedFiles> changed;
  if (!line.changed.empty()) changed = read_changed(line.changed, std::cin, fs::current_path());
  bool broken = false;
  std::vector<Scenario> scenarios = load(line, console, broken);
  run::GateResult result;
  result.verdict = verdict::Verdict::kSkip;  // if nothing is judged; the report says so too
  if (scenarios.empty()) {
    console.complain(line.tags.empty() ? "no scenario is left to run"
                                       : "no scenario has one of these tags");
    return finish(result, broken, line, console);
  }
  run::Options options = line.run;
  options.skip_unfit = true;
  if (!changed) {
    result = execute(std::move(scenarios), options, line, console);
    return finish(result, broken, line, console);
  }
  ChangedGate gate(std::move(scenarios), *changed, line);
  options.variants = gate.options().variants;
  if (gate.taken().empty())
    console.complain("the changed files ask for no scenario");
  else
    result = execute(gate.taken(), options, line, console);
  gate.merge(result);
  return finish(result, broken, line, console);
}

}  // namespace warmgate::cli
