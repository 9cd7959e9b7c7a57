// One file of fixtures/servers/log, read into a grammar.
#pragma once

#include "harness/explain/grammar.h"
#include "harness/scenario/problems.h"

namespace warmgate::explain::internal {

/// Figures alone; `index` of the grammar in its set, -1 = common to all. `adding`: what the
/// engine's own file says stays as it is.
void read_figures(const scenario::NodePtr& map, Grammar& out, scenario::Problems& problems);
void read_grammar(const scenario::Node& root, Grammar& out, GrammarSet& set, int index, bool adding,
                  scenario::Problems& problems);

}  // namespace warmgate::explain::internal
