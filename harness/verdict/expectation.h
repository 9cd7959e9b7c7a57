// From runs to a verdict: what was expected, what the gate allows, over repeats, and B against A.
#pragma once

#include <vector>

#include "harness/scenario/scenario.h"
#include "harness/verdict/gate.h"
#include "harness/verdict/verdict.h"

namespace warmgate::verdict {

/// Without an expectation (null or empty): passed is PASS; failed, crashed and hung are FAIL;
/// incomplete is INCONCLUSIVE. With one, each of outcome, phase, contracts and figures is a check;
/// where `outcome` is not given and nothing says that something must break, it is `passed`. Then
/// the gate's checks. Infra and skipped runs are INFRA and SKIP whatever was expected.
///
/// A check that failed decides (FAIL), else one that was not observed (INCONCLUSIVE), else PASS:
/// a run that crashed early must not become INCONCLUSIVE for the figures that it never reached.
[[nodiscard]] RunVerdict judge_run(const RunRecord& run, const scenario::Expectation* expect,
                                   const GateContext& gate);

/// Over the repeats of one variant: all must agree. A mixture of verdicts or, among runs that are
/// valid samples, of outcomes is FAIL and says how many of each. Infra beside passes is INFRA.
/// `runs` and `verdicts` are parallel.
[[nodiscard]] RunVerdict over_repeats(const std::vector<const RunRecord*>& runs,
                                      const std::vector<RunVerdict>& verdicts);

/// A valid sample of the outcome: passed, failed, crashed or hung.
bool is_sample(const RunRecord& run);

/// B against A: INCONCLUSIVE if a side has no valid sample; FAIL if a run of B did not pass or is
/// worse by the gate; else PASS. A's outcome does not matter. Sets of A count as accepted for
/// `new`, since what A already shows is not new in B. Texts speak of the sides by `names`.
[[nodiscard]] RunVerdict judge_ab(const std::vector<const RunRecord*>& a,
                                  const std::vector<const RunRecord*>& b, const GateContext& gate,
                                  const AbNames& names = {});

}  // namespace warmgate::verdict
