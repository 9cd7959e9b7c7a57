// The small config: what speaks of layers and experts is renumbered, everything else stays to the
// letter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/plan/shrink/json_file.h"
#include "harness/plan/shrink/select.h"
#include "harness/plan/shrink/structure.h"

namespace warmgate::plan::shrink {

struct Change {
  std::string key, from, to;  // as JSON, long lists shortened
};

/// Complains where a name of a layer stands inside a pattern that cannot be renumbered.
Json rewrite(const Json& config, const Structure& structure, const Selection& selection,
             std::int64_t experts, std::vector<Change>& changes, Complaints& complaints);

/// Old id → new id, -1 where the layer is gone. Ids from the number of layers on are draft layers.
std::int64_t new_id(const Structure& structure, const Selection& selection, std::int64_t old_id);

}  // namespace warmgate::plan::shrink
