// One step of a bisection: good, bad, cannot be judged, stop. `git bisect run warmgate step …`
// reads it from the exit code.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/run.h"

namespace warmgate::run {

/// git's protocol: 0 good, 1..127 but 125 bad, 125 skip, 128 and more stop the bisection.
enum class Step { kGood = 0, kBad = 1, kCannotJudge = 125, kStop = 128 };

/// The failure that is searched for. Empty: any.
struct Wanted {
  std::string id;                              // --fingerprint: 12 hex, or its beginning (>= 6)
  std::vector<verdict::Fingerprint> failures;  // --like REPORT.json
  bool any() const { return id.empty() && failures.empty(); }
};

struct StepOptions {
  std::filesystem::path scenario;
  Options run;
  std::string fingerprint;         // --fingerprint
  std::filesystem::path like;      // --like: a JSON report with the failure
  std::vector<std::string> build;  // run first, in the current folder; empty = nothing to build
};

struct StepResult {
  Step step = Step::kStop;
  std::string reason;              // one sentence
  std::optional<GateResult> gate;  // what was seen, if it came to a run
  bool interrupted = false;
};

/// Never throws: what cannot go on is kStop with the reason.
StepResult step(const StepOptions& options, const target::CancelToken& cancel,
                const Progress& progress = {});

/// The decision alone. A run shows the wanted failure if its fingerprint is the same; it is good if
/// every run passed (or, without a wanted failure, if the verdict is PASS); all else cannot be
/// judged, a different failure above all.
StepResult decide(const GateResult& gate, const Wanted& wanted);

/// Every fingerprint in a JSON report, wherever it stands (key `fingerprint`). Throws
/// std::runtime_error if the file is no JSON or has none.
std::vector<verdict::Fingerprint> fingerprints_in(const std::filesystem::path& report);

}  // namespace warmgate::run
