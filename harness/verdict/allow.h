// Known faults: findings that a scenario lists under `allow` break nothing, and stay printed. An
// entry that has expired, or that matches nothing any more, is itself a finding.
#pragma once

#include <string>
#include <vector>

#include "harness/scenario/scenario.h"
#include "harness/verdict/verdict.h"

namespace warmgate::verdict {

/// The entry is for this variant (name or base name) and today (YYYY-MM-DD; "" = no clock) is not
/// past its `until`. The day of `until` itself still counts.
bool applies(const scenario::Allow& allow, std::string_view variant, std::string_view today);
bool expired(const scenario::Allow& allow, std::string_view today);
bool matches(const scenario::Allow& allow, std::string_view contract, std::string_view key);

/// Moves what `allow` lists out of run.contracts (findings and notes) into run.allowed. A contract
/// left without findings is kept, and its `why` says how many were allowed. Call it before
/// classify().
void apply_allow(const std::vector<scenario::Allow>& allow, std::string_view today, RunRecord& run);

/// Checks of the `allow` list itself over all runs of a scenario: expired entries are FAIL; entries
/// that matched nothing are FAIL if every variant ran and the entry's contract was judged in each
/// of its runs that passed or failed (in at least one), else they are not judged (SKIP).
[[nodiscard]] std::vector<Check> check_allow(const std::vector<scenario::Allow>& allow,
                                             const std::vector<const RunRecord*>& runs,
                                             bool all_variants_ran, std::string_view today);

}  // namespace warmgate::verdict
