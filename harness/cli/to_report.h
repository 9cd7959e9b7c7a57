// What run_scenarios() returned → what the writers of reports read.
#pragma once

#include "harness/cli/command_line.h"
#include "reports/report.h"

namespace warmgate::cli {

/// Points into `result`, which must outlive the report.
reports::Report to_report(const run::GateResult& result, const CommandLine& line, int exit_code);

/// Values of our environment that no report may show.
std::vector<std::string> secret_values();

}  // namespace warmgate::cli
