// What plan and keys share: one run of each variant that is wanted, judged by nobody.
#pragma once

#include "harness/cli/command_line.h"
#include "harness/cli/console.h"

namespace warmgate::cli {

/// Throws std::runtime_error if the machine, not the engine, kept a run from being observed.
run::ScenarioResult observe(const CommandLine& line, Console& console, bool& interrupted);

}  // namespace warmgate::cli
