// Gate rules: how much worse is too much, for one run or for B against A.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/scenario/scenario.h"
#include "harness/verdict/compare/accepted.h"
#include "harness/verdict/verdict.h"

namespace warmgate::verdict {

struct GateContext {
  const std::map<std::string, scenario::GateRule>* rules = nullptr;
  const AcceptedVariant* accepted = nullptr;            // of the run's variant; null = none
  const std::vector<scenario::Allow>* allow = nullptr;  // a key it names counts as accepted
  std::string today;
  /// Contracts that `expect` wants broken: the gate does not judge them a second time.
  std::vector<std::string> expected_broken;
};

/// What the two sides of a comparison are called.
struct AbNames {
  std::string a = "A", b = "B";
};

/// Checks of every rule for one run. `max`, `min` and `new` are judged; `regress` needs two sides
/// and is printed as not judged (SKIP). A figure or contract that was not observed is INCONCLUSIVE,
/// except where the run crashed or hung before it: there its outcome speaks, and it is not judged.
/// A rule named like a contract counts its findings and notes beyond `allow`; without max, min and
/// new it means max 0. A time of a disturbed run is never judged.
[[nodiscard]] std::vector<Check> judge_gate(const GateContext& gate, const RunRecord& run);

/// `regress` of every rule that has one: the median of B's runs against A's. Both `by` and `and`
/// must be exceeded. Times are shown, not gated. Not judged where a side did not reach the figure.
[[nodiscard]] std::vector<Check> judge_regress(const GateContext& gate,
                                               const std::vector<const RunRecord*>& a,
                                               const std::vector<const RunRecord*>& b,
                                               const AbNames& names = {});

/// Members of the run's set of that name (a figure's, or a contract's keys) beyond the accepted
/// set and `allow`; nothing if the set was not observed.
std::optional<std::vector<std::string>> new_members(const GateContext& gate, const RunRecord& run,
                                                    const std::string& name);

}  // namespace warmgate::verdict
