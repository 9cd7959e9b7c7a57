// Combinations of legal values that cannot be started: refused before anything is.
#pragma once

#include <functional>
#include <string>

#include "harness/scenario/check.h"
#include "harness/scenario/overlay.h"
#include "harness/scenario/resolved.h"

namespace warmgate::scenario {

/// Most query heads per rank that the modelled decode kernel takes after padding (FlashMLA's FP8
/// sparse decode: 64 or 128; vLLM at d40c3e3c00, models/deepseek_v4/nvidia/flashmla.py).
inline constexpr std::int64_t kMaxHeadsPerRank = 128;
inline constexpr std::int64_t kMaxLayers = 512;

/// Place, key path, message.
using Report = std::function<void(const Place&, const std::string&, const std::string&)>;

/// Adds a problem for each impossible combination, at the value to blame. Nothing is judged that
/// rests on a tainted section. `tree` is the merged overlay that `resolved` was read from.
void validate(const Resolved& resolved, const NodePtr& tree, const Tainted& tainted,
              const Report& report);

}  // namespace warmgate::scenario
