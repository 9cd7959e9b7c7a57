#include "harness/run/setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/scenario/problems.h"

namespace warmgate::run {

namespace fs = std::filesystem;
using scenario::Problem;
using scenario::Scenario;
using scenario::ScenarioError;
using scenario::Variant;

bool is_chosen(const Variant& variant, const std::vector<std::string>& names) {
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return name == variant.name || name == variant.base_name;
         });
}

void refuse_unknown_variants(const std::vector<Scenario>& scenarios,
                             const std::vector<std::string>& names) {
  std::vector<Problem> problems;
  std::vector<std::string> known;
  for (const Scenario& scenario : scenarios) {
    for (const Variant& variant : scenario.variants) {
      for (const std::string& name : {variant.base_name, variant.name}) {
        if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
      }
    }
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string file = scenarios.size() == 1 ? scenarios[0].path.string() : "--variant";
    problems.push_back(
        {file, 0, 0, "variants",
         fmt::format("there is no variant '{}'; one of {}{}", name, scenario::list_of(known),
                     scenario::did_you_mean(name, known))});
  }
  if (!problems.empty()) throw ScenarioError(std::move(problems));
}

std::vector<Scenario> load_all(const std::vector<fs::path>& files,
                               const scenario::LoadOptions& options) {
  std::vector<Scenario> out;
  std::vector<Problem> problems;
  for (const fs::path& file : files) {
    try {
      out.push_back(scenario::load_scenario(file, options));
    } catch (const ScenarioError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (!problems.empty()) throw ScenarioError(std::move(problems));
  return out;
}

std::vector<verdict::Accepted> read_all_accepted(const std::vector<Scenario>& scenarios) {
  std::vector<verdict::Accepted> out;
  std::vector<Problem> problems;
  for (const Scenario& scenario : scenarios) {
    try {
      out.push_back(verdict::read_accepted(scenario.accepted_path()));
    } catch (const std::exception& error) {
      problems.push_back({scenario.accepted_path().string(), 0, 0, "", error.what()});
    }
  }
  if (!problems.empty()) throw ScenarioError(std::move(problems));
  return out;
}

}  // namespace warmgate::run
