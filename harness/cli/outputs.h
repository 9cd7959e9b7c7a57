// Where a command writes to: looked at before the work, complained of after it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/cli/command_line.h"

namespace warmgate::cli {

/// The files that the user asked for, with the option that names each. `--json -` is stdout's.
std::vector<std::pair<std::string, std::filesystem::path>> outputs_of(const CommandLine& line);

/// Throws ScenarioError, which is bad usage and names the option, if an output cannot be written
/// (no such folder), if two are one file (whatever they are called and through whatever links), if
/// one is what the command reads, or if one is called "-". Every command is held to it before it
/// starts.
void check_outputs(const CommandLine& line);

}  // namespace warmgate::cli
