// Which variants of a scenario the user named.
#pragma once

#include <string>
#include <vector>

#include "harness/scenario/scenario.h"

namespace warmgate::cli {

/// Those whose name or base name is in `names`, in the scenario's order; all for an empty list.
/// Throws ScenarioError for a name that is none, with what there is and the nearest.
std::vector<const scenario::Variant*> select_variants(const scenario::Scenario& scenario,
                                                      const std::vector<std::string>& names);

}  // namespace warmgate::cli
