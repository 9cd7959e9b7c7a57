// A merged tree as the plain structs of resolved.h and scenario.h.
#pragma once

#include "harness/scenario/overlay.h"
#include "harness/scenario/scenario.h"

namespace warmgate::scenario {

/// One rank's values; the struct's own defaults where the tree has none. `device` is "" for a
/// command. A drafter without method is none, whatever a behaviour says of its buffers.
Resolved assemble(const NodePtr& tree, const std::string& device);
/// The tree with ranks.RANK laid over it.
NodePtr rank_tree(const NodePtr& tree, std::int64_t rank);

Target assemble_target(const NodePtr& tree, const std::string& folder = ".");

}  // namespace warmgate::scenario
