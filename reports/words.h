// Verdicts and findings in words that a person reads once: which phase, which layers, which
// promise, what proves it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/report.h"

namespace warmgate::reports {

/// "layer 43", "layers 43,44,45", "layers 0-41": runs of more than three are drawn together.
std::string layers_text(std::vector<int> layers);

/// Findings that say the same of several layers, ranks or keys, as one. Points into the findings.
struct FindingGroup {
  const contract::Finding* first = nullptr;
  std::vector<int> layers;        // sorted, distinct
  std::vector<int> ranks;         // sorted, distinct; empty = all or none
  std::vector<std::string> keys;  // in order of appearance, distinct
  std::size_t count = 0;          // findings in it, folded ones counted
};
std::vector<FindingGroup> group_findings(const std::vector<contract::Finding>& findings);

/// "layer 43 (draft, swaonly): <message>"; the place is left out where the message names it. With
/// `run`, keys are shortened to what tells them from the run's other keys.
std::string proof_text(const FindingGroup& group, const verdict::RunRecord* run = nullptr);

/// "crashed in profile", "passed", "hung in serve (silence)", "crashed in load by SIGSEGV".
std::string outcome_text(const verdict::RunRecord& run);

/// A broken promise that says something beyond the run's reason: that a run which ended early did
/// not start says nothing more.
bool tells_more(const contract::Result& result, const verdict::RunRecord& run);

/// Whether something in it must be repeated by hand: the outcome is not passed, or the verdict is
/// neither PASS nor SKIP.
bool wants_command(const VariantReport& variant);

/// The run that a variant is shown by: the first whose outcome is not passed, else the first; null
/// without runs.
const verdict::RunRecord* telling_run(const VariantReport& variant);

/// "2 of 3 runs crashed" where repeats disagree, else "".
std::string disagreement_text(const VariantReport& variant);

/// "11 contracts kept", "9 contracts kept, 1 broken, 1 not observed".
std::string contracts_text(const verdict::RunRecord& run);

/// "gate: 2 scenarios, 6 variants, 6 runs in 420 ms (1 FAIL, 5 PASS)", and whether it was
/// interrupted or is soft.
std::string counts_text(const Report& report);

/// PASS and SKIP ask nobody to do anything.
bool is_good(verdict::Verdict verdict);

/// "vllm-project/vllm: issue 50615, introduced by 50298, fixed by 50693"; "" without a source.
std::string source_text(const nlohmann::json& source);

}  // namespace warmgate::reports
