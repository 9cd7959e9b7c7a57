// ready-honest as a client sees it: what was asked after a server said that it was ready.
#pragma once

#include <vector>

#include "harness/contract/view.h"

namespace warmgate::contract {

/// Requests refused after health said ready, and a second request that is worse than the third.
/// Nothing where no request was seen.
std::vector<Finding> served_at_ready(const View& view);

/// How much slower than the third the second may be: both must be exceeded.
inline constexpr double kSecondFactor = 3, kSecondMore_ms = 100;

}  // namespace warmgate::contract
