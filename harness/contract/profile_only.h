// What only profiling asks for. A fault like vllm-project/vllm#50298 stays in the code while the
// layers happen to own what is asked (#46789 gave the draft layers a buffer of their own): nothing
// breaks, and this is the trace that it leaves.
#pragma once

#include <vector>

#include "harness/contract/contract.h"
#include "harness/contract/view.h"

namespace warmgate::contract {

/// Notes: resources that the profile phase requires of a (kind, role) of layers which own them, and
/// that no later phase requires of the same layers although those took part in one. Empty where no
/// later phase was reached: nothing can be said then.
std::vector<Finding> required_by_profile_alone(const View& view);

}  // namespace warmgate::contract
