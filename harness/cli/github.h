// What GitHub Actions is told beyond the report: annotations on stderr (the runner reads both
// streams; stdout may be a program's), and the summary in $GITHUB_STEP_SUMMARY.
#pragma once

#include <string>

#include "harness/cli/command_line.h"
#include "harness/cli/console.h"
#include "harness/scenario/scenario.h"
#include "reports/report.h"

namespace warmgate::cli {

/// --github or --no-github; without either, where GITHUB_ACTIONS=true. Commands that judge only.
bool tells_github(const CommandLine& line);

/// Both. Throws std::runtime_error if the summary cannot be written and --github asked for it;
/// where nobody asked it is only complained of.
void tell_github(const reports::Report& report, const CommandLine& line, Console& console);

/// Annotations of problems with scenario files, or of any other end without a report. Nothing
/// unless tells_github().
void tell_github(const scenario::ScenarioError& error, const CommandLine& line, Console& console);
void tell_github(const std::string& error, const CommandLine& line, Console& console);

}  // namespace warmgate::cli
