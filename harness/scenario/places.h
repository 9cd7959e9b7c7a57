// Where the parts of a scenario stand in its files, and which files it speaks of by pattern.
#pragma once

#include <map>
#include <string>

#include "harness/scenario/scenario.h"
#include "harness/scenario/yaml_node.h"

namespace warmgate::scenario {

/// `scenario` and each entry of variants, expect and gate, by key path.
std::map<std::string, Position> positions_of(const NodePtr& tree);

/// A pattern of `touches` that no path of a repository can match would skip the scenario for ever
/// without a word: adds a problem for each of them. `touches` may be null.
void check_globs(const NodePtr& touches, Problems& problems);

}  // namespace warmgate::scenario
