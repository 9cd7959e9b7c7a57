// Where a command writes to: looked at before the work, complained of after it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/cli/command_line.h"

namespace warmgate::cli {

/// The files that the user asked for, with the option that names each. `--json -` is stdout's.
std::vector<std::pair<std::string, std::filesystem::path>> outputs_of(const CommandLine& line);

/// Throws ScenarioError, which is bad usage, if two outputs are one file (whatever they are called
/// and through whatever links), if one is the scenario itself, or if one is called "-". Throws
/// std::runtime_error if one cannot be written.
void check_outputs(const CommandLine& line);

}  // namespace warmgate::cli
