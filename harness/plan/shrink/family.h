// One family of models: how its config tells the kinds of the layers, and what its weights weigh.
// A new family is one struct in a family_*.cc and one line in family.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/plan/shrink/reader.h"
#include "harness/plan/shrink/structure.h"
#include "harness/plan/shrink/weights.h"

namespace warmgate::plan::shrink {

struct Family {
  std::string_view model_type;  // of config.json
  void (*read)(Reader& reader, Structure& structure);
  void (*weigh)(Reader& reader, const Structure& structure, WeightList& weights);
};

/// Null if there is none.
const Family* family_of(std::string_view model_type);
std::vector<std::string> family_names();

/// What the config says. Complaints, and a structure that must not be used, for a model_type that
/// is not known, values that do not fit together, and every key that may speak of layers and is not
/// known: nothing is guessed.
Structure read_structure(const Json& config, Complaints& complaints);

WeightList weigh(const Json& config, const Structure& structure, Parallel parallel,
                 Complaints& complaints);
/// What was assumed for that.
std::vector<std::string> weight_notes(const Json& config);

/// Complains where heads, groups or widths do not divide by the ranks: the model itself does not
/// start like that, and shrinking changes none of these.
void check_parallel(const Json& config, const Structure& structure, Parallel parallel,
                    Complaints& complaints);

}  // namespace warmgate::plan::shrink
