// From what a run gave to what it means: events of the harness, contracts, outcome, figures,
// fingerprint, verdict, and over a scenario's runs the comparisons and the state of its `allow`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/contract/contract.h"
#include "harness/run/artefact/artefacts.h"
#include "harness/run/keys.h"
#include "harness/run/run.h"
#include "harness/run/schedule.h"
#include "harness/verdict/compare/accepted.h"
#include "harness/verdict/metrics.h"

namespace warmgate::run {

/// Metrics and contracts from outside the tree.
struct Extras {
  std::vector<verdict::Metric> metrics;
  std::vector<contract::ExternalContract> contracts;
};
/// Throws ScenarioError with everything that is wrong, two things of one name included.
Extras load_extras(const Options& options);

struct JudgeContext {
  const Options& options;
  const Extras& extras;
  KeyJudge& keys;
  const nlohmann::json& environment;
  std::string today;  // YYYY-MM-DD
  const Artefacts* artefacts = nullptr;
};

/// Today's date by the clock, UTC.
std::string today_utc();

/// Takes the job's trace. The run's verdict comes with it.
struct JudgedRun {
  verdict::RunRecord record;
  verdict::RunVerdict verdict;
};
JudgedRun judge(Job& job, const verdict::Accepted& accepted, const JudgeContext& context);

/// Fills checks, comparisons, verdict and reason from the variants.
void conclude(ScenarioResult& result, bool all_variants_ran, const verdict::Accepted& accepted,
              const JudgeContext& context);

}  // namespace warmgate::run
