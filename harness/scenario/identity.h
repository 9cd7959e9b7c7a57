// What was run, as one hash: equal identities mean equal runs, whatever the files are called.
#pragma once

#include <string>
#include <vector>

#include "harness/scenario/scenario.h"

namespace warmgate::scenario {

/// SHA-256 of the canonical JSON of: language version, expanded model, seams, limits, parallel,
/// drafter, workload, seeds, device, architectures, of every rank; and, for a command target, its
/// argv as written, without which all commands would be one. Not in it: names (of the scenario, the
/// variant, the model), about, source, expect, gate, allow, labels, paths, environment, deadlines.
std::string identity(const std::vector<Resolved>& ranks, const Target& target);
inline std::string identity(const std::vector<Resolved>& ranks) { return identity(ranks, {}); }

}  // namespace warmgate::scenario
