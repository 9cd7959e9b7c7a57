// What a report over two builds begins with: what each of them is, and in what they differ.
#pragma once

#include <vector>

#include "harness/verdict/artefact.h"
#include "reports/markdown_document.h"
#include "reports/markdown_text.h"
#include "reports/terminal.h"

namespace warmgate::reports {

/// Each variant that has an artefact against the first that has one. Variants of a matrix that are
/// started from the same thing under the same conditions are compared once.
std::vector<verdict::ArtefactDifference> artefact_differences(const ScenarioReport& scenario);

/// The variants' identities and their differences; nothing where no variant has an artefact.
void print_artefacts(Printer& out, const ScenarioReport& scenario, Detail detail);
void add_artefacts(MarkdownDocument& document, const MarkdownText& text, const Report& report);

/// "no difference: 31 packages, 4 variables compared", "2 packages, 1 variable differ".
std::string difference_text(const verdict::ArtefactDifference& difference);

}  // namespace warmgate::reports
