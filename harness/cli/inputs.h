// What a command is given to read, where something else of warmgate's was given instead.
#pragma once

#include "harness/cli/command_line.h"

namespace warmgate::cli {

/// Throws ScenarioError where a bundle, a kept run or a JSON report stands in a scenario's place,
/// and says which command takes it.
void check_inputs(const CommandLine& line);

}  // namespace warmgate::cli
