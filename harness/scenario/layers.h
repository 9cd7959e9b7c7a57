// Which layers make a variant, in which order. Later wins: defaults of the table, preset, base
// behaviours, base scenario, overlay of the device, behaviours of the variant, variant, matrix,
// --set; an overlay of a rank counts over all of them.
#pragma once

#include <string>
#include <vector>

#include "harness/scenario/files.h"
#include "harness/scenario/scenario.h"

namespace warmgate::scenario {

/// An overlay from --set: of every variant, or of the one named by `variants.NAME.…`.
struct SetOverlay {
  std::string variant;  // "" = all
  NodePtr overlay;
};
/// KEY.PATH=VALUE of LoadOptions::overlays; the values are YAML.
std::vector<SetOverlay> read_sets(const std::vector<std::string>& texts, const NodePtr& scenario,
                                  Checker& checker, Problems& problems);

/// A variant before anything is merged.
struct Plan {
  std::string name, base_name;
  std::vector<NodePtr> overlays;  // each may name behaviours; lowest first
};
/// Variants times matrix, in file order, the last key of the matrix running fastest. At most
/// kMostVariants, else a problem.
inline constexpr std::size_t kMostVariants = 256;
std::vector<Plan> plan_variants(const NodePtr& scenario, Problems& problems);

/// The keys of a scenario that an overlay may have, as layer "scenario".
NodePtr base_overlay(const NodePtr& scenario);

struct Merged {
  NodePtr tree;                         // everything but ranks applied
  std::vector<std::string> behaviours;  // base first
  std::string device;                   // of a native target, "" for others
};
Merged merge_layers(const NodePtr& scenario, const Plan& plan, const std::vector<SetOverlay>& sets,
                    const std::string& device, Files& files);

}  // namespace warmgate::scenario
