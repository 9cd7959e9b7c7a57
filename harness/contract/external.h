// Contracts that live outside the tree: an executable that reads a trace and writes findings.
//
// stdin:  the trace, one event a line, as in the event protocol.
// stdout: one JSON object a line. A finding has any of expected, seen, message, key, phase, layer,
//         layer_kind, role, rank, count, detail, events (indices of input lines, from 0);
//         `"note": true` makes it a note. {"state":"not_applicable"|"not_observed","why":…} instead
//         says that there was nothing to judge.
// exit 0: judged. Anything else, a line that is not such an object, more than 4 MiB of output or a
//         passed deadline is not_observed with the reason, never kept.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/contract/contract.h"

namespace warmgate::contract {

inline constexpr std::size_t kMaxExternalOutput = 4u << 20;  // bytes
inline constexpr std::size_t kMaxExternalFindings = 1000;

/// Blocks until the program's whole process group is gone, at most deadline + 1 s. Safe against
/// SIGPIPE; the program gets a clean signal mask and no descriptor but 0, 1 and 2.
[[nodiscard]] Result judge_external(const ExternalContract& contract, const Context& context);

/// A YAML file: one mapping, or a list of them, {name, argv: […], needs: […], deadline_s}. argv[0]
/// with a slash is relative to the file's folder. Throws scenario::ScenarioError with every problem
/// (unknown or missing keys, a name that a built-in contract has).
std::vector<ExternalContract> load_external_contracts(const std::filesystem::path& file);

}  // namespace warmgate::contract
