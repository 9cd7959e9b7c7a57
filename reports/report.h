// What a report is made of: plain data, filled by the command that ran something. Writers read
// nothing else, so each of them is tested without starting a process.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/contract/contract.h"
#include "harness/scenario/scenario.h"
#include "harness/verdict/artefact.h"
#include "harness/verdict/verdict.h"

namespace warmgate::reports {

struct VariantReport {
  std::string name;
  std::string base_name;  // the key that expect and allow use; equals `name` without a matrix
  std::vector<std::string> behaviours;
  std::string identity;
  bool modelled = false;        // ran on our own engine: its behaviours are rules as modelled here
  std::string device;           // meta cpu cuda; "" for foreign programs
  std::string expected;         // what `expect` asks, in words; "" = nothing
  scenario::Position position;  // of the variant in its YAML file
  std::vector<const verdict::RunRecord*> runs;  // one per repeat; not owned
  std::optional<std::int64_t> requests;         // that its workload asks for
  verdict::RunVerdict verdict;
  std::optional<verdict::ArtefactIdentity> artefact;  // what it was started from
};

struct ScenarioReport {
  std::string name, path, about;
  scenario::Position position;  // of the key `scenario`
  std::string selection;        // why --changed took it, or did not; "" = nobody asked
  nlohmann::json source = nlohmann::json::object();  // repo, issue, fix, introduced_by
  std::vector<std::string> tags;
  std::vector<VariantReport> variants;
  std::vector<verdict::Check> checks;         // over the whole scenario
  std::vector<contract::Result> comparisons;  // capacity-equal, set-growth
  verdict::Verdict verdict = verdict::Verdict::kInconclusive;
  std::string reason;
};

struct Report {
  std::string command;                             // repeats the whole
  std::string verb;                                // run gate ab
  nlohmann::json call = nlohmann::json::object();  // verb, scenarios, options: how to make it again
  std::string version;                             // of warmgate
  std::vector<ScenarioReport> scenarios;
  verdict::Verdict verdict = verdict::Verdict::kInconclusive;
  int exit_code = 0;
  nlohmann::json machine = nlohmann::json::object();  // environment record
  std::vector<std::string> not_observed;              // what this machine could not show, and why
  double wall_s = 0;
  bool interrupted = false;
  std::set<verdict::Verdict> soft;         // verdicts that --soft maps to 0
  std::vector<std::string> output_errors;  // files written on the way that are not whole
  std::vector<std::string> secrets;        // masked by value once more, whatever a field holds
};

}  // namespace warmgate::reports
