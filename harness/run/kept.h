// What stays of a call so that it can be understood and repeated elsewhere: the folder that --keep
// writes, and that a bundle packs.
//
//   bundle.json          schema bundle/1.0: the call, what is in it, what was left out
//   report.json          the report
//   environment.json     the environment record
//   trees/N/scenarios/…  the scenarios, what they extend, accepted sets, programs beside them
//   fixtures/…           models, behaviours, presets that they name
//   extra/…              files of --metrics and --contracts
//   resolved/…           each variant as it was understood
//   runs/S.V.R/…         trace.jsonl and what each worker printed
//
// Secrets are masked in all of it. In YAML they become kLeftOut, which stays legal YAML.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/run/run.h"

namespace warmgate::run {

inline constexpr std::string_view kBundleSchema = "bundle/1.0";
/// Stands in a scenario of a bundle where a secret stood.
inline constexpr std::string_view kLeftOut = "secret-left-out-of-the-bundle";

/// What is needed to repeat a call: verb, scenarios (as they were named), sides, variants and the
/// options that change a result. Secrets as they are: whoever writes it masks it.
nlohmann::json call_json(const std::string& verb, const std::vector<std::filesystem::path>& files,
                         const std::vector<std::string>& sides, const Options& options);

/// One run as far as it is known.
struct KeptRun {
  std::string scenario, variant;
  int repeat = 0;
  const trace::Trace* trace = nullptr;  // null = not kept
  std::vector<verdict::Output> outputs;
};

struct Kept {
  nlohmann::json call;         // call_json()
  nlohmann::json environment;  // record
  std::string report;          // JSON text
  std::string command;         // repeats it
  std::vector<const scenario::Scenario*> scenarios;
  std::vector<KeptRun> runs;
  std::vector<std::string> left_out;  // said already: what is missing, and why
  std::vector<std::string> secrets;
};

/// Writes the folder; it may exist, but must not hold another one's files. Throws
/// std::runtime_error naming the path.
void write_kept(const std::filesystem::path& folder, const Kept& kept);

/// Throws what write_kept() would about the folder itself, before minutes of work.
void check_keep_folder(const std::filesystem::path& folder);

/// The runs of a result, with their traces.
std::vector<KeptRun> kept_runs(const GateResult& result);

}  // namespace warmgate::run
