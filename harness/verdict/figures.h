// Numbers and sets of one run, read from its trace. What no source would have sent stays absent:
// a figure that was not observed is never zero.
#pragma once

#include "harness/contract/view.h"
#include "harness/verdict/verdict.h"

namespace warmgate::verdict {

/// Fills run.figures and run.sets from run.trace, run.workers, run.outputs and run.contracts.
///
/// Ranks: of figures where higher is better the smallest counts, of all others the largest (the
/// slowest rank, the fullest device). A `counter` event outweighs what could be derived.
/// Sets: keys_warmed, keys_launched, keys_invalid, compiles_after_ready, skips, kernels, warnings,
/// answers (of a server: request and hash of its text) and contract:<name> with the keys of a
/// contract's findings and notes, allowed ones included.
void collect_figures(const contract::View& view, RunRecord& run);

/// Line of captured output with what differs from run to run masked; see fingerprint.h.
std::vector<std::string> warnings_of(const std::vector<Output>& outputs);

}  // namespace warmgate::verdict
