// The report a person reads: one line a variant with its verdict and proof first; then figures,
// what was allowed and why, what was not observed and why; the command that repeats each failure.
#pragma once

#include <string>

#include "reports/printer.h"
#include "reports/report.h"

namespace warmgate::reports {

enum class Detail { kQuiet, kNormal, kVerbose };

/// kQuiet: scenarios that did not pass, and the closing line. kVerbose: every figure, every note,
/// the captured lines of every failure.
std::string terminal_report(const Report& report, const Style& style,
                            Detail detail = Detail::kNormal);

/// The sections of one scenario that follow its variants' lines; shared with the report of `ab`.
void print_scenario(Printer& out, const ScenarioReport& scenario, Detail detail);
/// The closing lines: what the machine could not show, what was modelled, the verdict.
void print_closing(Printer& out, const Report& report, Detail detail);

}  // namespace warmgate::reports
