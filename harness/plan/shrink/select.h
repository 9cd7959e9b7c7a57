// Which layers and how many experts stay.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/plan/shrink/problem.h"
#include "harness/plan/shrink/structure.h"

namespace warmgate::plan::shrink {

struct Selection {
  std::vector<std::int64_t>
      kept;  // old ids of the target's layers, ascending; the index is the new id
  std::vector<std::int64_t> taps;  // new ids
};

/// The fewest layers with every (kind, role) of the target, each `per_kind` times where the model
/// has it that often, and at least two layers. All taps stay: their number is the width of a
/// projection. Where a period makes the kinds, the layers are the first ones, so that the period
/// itself stays.
Selection select_layers(const Structure& structure, std::int64_t per_kind);

/// The new number of experts. By default the least divisor of the old one that leaves the router a
/// choice (twice the top-k), divides by `ep`, by the groups and by 8 if the old one does, and
/// leaves each group two. `wish` must keep the same rules (once the top-k is enough); complains,
/// and returns the old one, if not.
std::int64_t select_experts(const Experts& experts, std::int64_t ep,
                            std::optional<std::int64_t> wish, Complaints& complaints);

}  // namespace warmgate::plan::shrink
