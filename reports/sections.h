// The sections of a scenario's terminal report that follow the first screen.
#pragma once

#include "reports/terminal.h"

namespace warmgate::reports {

/// All of the following under the scenario's name; nothing where nothing is to be said. Brief:
/// without figures, notes and comparisons that were kept.
void print_details(Printer& out, const ScenarioReport& scenario, bool brief, Detail detail);

/// Figures as a table, a column a variant; without kVerbose only those that decide or that a person
/// asks for first.
void print_figures(Printer& out, const ScenarioReport& scenario, Detail detail);
/// Findings that `allow` lists, with reason and how many.
void print_allowed(Printer& out, const ScenarioReport& scenario, Detail detail);
/// Worth knowing, breaks nothing.
void print_notes(Printer& out, const ScenarioReport& scenario, Detail detail);
/// Checks that had nothing to judge, and why.
void print_not_judged(Printer& out, const ScenarioReport& scenario, Detail detail);
/// Contracts about which nothing can be said, and why.
void print_not_observed(Printer& out, const ScenarioReport& scenario, Detail detail);
/// Judgements over two traces.
void print_comparisons(Printer& out, const ScenarioReport& scenario, Detail detail);
/// One line of a verdict. A note that repeats the run's reason is left out.
void print_check(Printer& out, std::size_t indent, const verdict::Check& check,
                 const verdict::RunRecord* run);

}  // namespace warmgate::reports
