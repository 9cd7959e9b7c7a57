// The report a person reads. First, on one screen where it fits: per scenario a line a variant with
// its verdict, outcome, proof and the command that repeats it. Then figures, what was allowed and
// why, what was not judged or not observed and why. The verdict is the last line.
#pragma once

#include <string>

#include "reports/printer.h"
#include "reports/report.h"

namespace warmgate::reports {

enum class Detail { kQuiet, kNormal, kVerbose };

/// kQuiet: scenarios that did not pass, and the closing line. kVerbose: every figure, note, check
/// and finding, whole keys, the captured lines of every failure.
std::string terminal_report(const Report& report, const Style& style,
                            Detail detail = Detail::kNormal);

/// A scenario's part of the first screen.
void print_summary(Printer& out, const ScenarioReport& scenario, Detail detail);
/// The closing lines: what the machine could not show, what was modelled, the verdict.
void print_closing(Printer& out, const Report& report, Detail detail);

}  // namespace warmgate::reports
