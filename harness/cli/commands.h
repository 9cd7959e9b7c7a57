// One function a command: takes what was asked, says and writes what came out, returns the exit
// code. They may throw: main() turns a ScenarioError into 2 (128 for `step`) and anything else into
// 4 (128 for `step`).
#pragma once

#include "harness/cli/command_line.h"
#include "harness/cli/console.h"

namespace warmgate::cli {

/// The function of line.command.
int dispatch(const CommandLine& line, Console& console);

int run_command(const CommandLine& line, Console& console);
int ab_command(const CommandLine& line, Console& console);
int gate_command(const CommandLine& line, Console& console);
int step_command(const CommandLine& line, Console& console);
int resolve_command(const CommandLine& line, Console& console);
int plan_command(const CommandLine& line, Console& console);
int keys_command(const CommandLine& line, Console& console);
int accept_command(const CommandLine& line, Console& console);
int shrink_command(const CommandLine& line, Console& console);
int bundle_command(const CommandLine& line, Console& console);
int probes_command(const CommandLine& line, Console& console);
int schema_command(const CommandLine& line, Console& console);
int explain_command(const CommandLine& line, Console& console);
int watch_command(const CommandLine& line, Console& console);
int doctor_command(const CommandLine& line, Console& console);
int doctor_target_command(const CommandLine& line, Console& console);

}  // namespace warmgate::cli
