// From a scenario to results: plans variants x repeats, starts runs, closes their traces, has
// contracts judge them and verdicts given, writes a row at each transition.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/scenario/scenario.h"
#include "harness/target/target.h"
#include "harness/verdict/artefact.h"
#include "harness/verdict/verdict.h"
#include "kernels/jit/jit.h"

namespace warmgate::run {

struct Options {
  std::string verb = "gate";          // of the command that repeats the whole: gate, or run
  std::vector<std::string> variants;  // empty = all
  int jobs = 0;                       // 0 = number of cores
  int repeat = 1;
  std::optional<double> timeout_s;  // per run, over all phases
  std::optional<double> grace_s;    // SIGTERM to SIGKILL; empty = the target's default
  std::optional<double> settle_s;   // what a run leaves may vanish this long; empty = default
  bool expect = true;               // --no-expect drops `expect`, not `gate` or `allow`
  std::filesystem::path engine;     // "" = warmgate-engine beside this program
  std::filesystem::path cache_dir;  // kernels; "" = jit::default_cache_dir()
  bool rebuild = false;             // build artefacts anew that are built already
  std::filesystem::path artefacts;  // where built ones are kept; "" = default_artefact_cache()
  bool no_cache = false;            // a private, empty kernel cache for this call
  jit::Backend jit = jit::Backend::kAuto;
  /// A variant that this build cannot start (its device, its architecture) is skipped, with the
  /// reason, instead of being an error: right for a gate over many scenarios.
  bool skip_unfit = false;
  std::string today;           // YYYY-MM-DD for `allow.until`; "" = the clock's
  std::filesystem::path rows;  // JSON Lines file that gets a row per transition; "" = none
  std::filesystem::path keep;  // folder that gets what a bundle is made of; "" = none
  /// The scenarios come out of this bundle, unpacked for this call alone: commands name it.
  std::filesystem::path bundle;
  std::vector<std::string> probes;               // inject.h: which ones every process gets
  std::vector<std::filesystem::path> metrics;    // extra metric files (data)
  std::vector<std::filesystem::path> contracts;  // extra contracts (YAML: name, argv, needs)
  scenario::LoadOptions load;
};

/// What happened so far, for a status line. Called from any thread, one call at a time.
struct Status {
  int done = 0, total = 0;
  std::string scenario, variant, phase;  // of the run that changed
};
using Progress = std::function<void(const Status&)>;

struct VariantResult {
  scenario::Variant variant;
  std::vector<verdict::RunRecord> runs;  // one per repeat
  verdict::RunVerdict verdict;           // over all repeats
  std::optional<verdict::ArtefactIdentity>
      artefact;  // what it was started from, where that is told
};

struct ScenarioResult {
  scenario::Scenario scenario;
  std::vector<VariantResult> variants;
  std::vector<verdict::Check>
      checks;  // over the whole scenario: allow entries that expired or matched nothing
  std::vector<contract::Result>
      comparisons;  // capacity-equal, set-growth between variants, or against the accepted set
  verdict::Verdict verdict = verdict::Verdict::kInconclusive;
  std::string reason;
  std::string selection;  // why it was taken or passed over for a set of changed files; "" = no set
};

struct GateResult {
  std::vector<ScenarioResult> scenarios;
  verdict::Verdict verdict = verdict::Verdict::kInconclusive;
  nlohmann::json machine;                 // environment record of this machine
  std::vector<std::string> not_observed;  // what this machine could not show, with the reason
  double wall_s = 0;
  bool interrupted = false;
  std::string command;                     // how to repeat the whole
  std::vector<std::string> output_errors;  // files of Options that could not be written whole
  /// Known before, or found while it ran; masked in all of the above, and in what is made of it.
  std::vector<std::string> secrets;
};

/// Runs every scenario. Throws ScenarioError before anything is started if any file is wrong, or
/// asks for what this build cannot give (fit.h).
GateResult run_scenarios(const std::vector<std::filesystem::path>& files, const Options& options,
                         const target::CancelToken& cancel, const Progress& progress = {});

/// The same for scenarios that are loaded already (plan, keys, tests); `options.load` is not used.
GateResult run_loaded(std::vector<scenario::Scenario> scenarios, const Options& options,
                      const target::CancelToken& cancel, const Progress& progress = {});

/// options.load with the names that options.metrics and options.contracts bring, so that a scenario
/// may speak of them. Throws ScenarioError if one of those files is wrong.
scenario::LoadOptions load_options(const Options& options);

/// B against A over the runs of one scenario: what `ab` decides by. Names as in VariantResult.
[[nodiscard]] verdict::RunVerdict compare(const ScenarioResult& result, const std::string& a,
                                          const std::string& b, const Options& options);

/// Exit code of `run`, `gate`, `ab` for a set of verdicts: the first present of 1, 4, 3, 0.
int exit_code(const std::vector<verdict::Verdict>& verdicts, bool allow_skip);

}  // namespace warmgate::run
