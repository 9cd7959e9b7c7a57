// The report as GitHub's Markdown: for $GITHUB_STEP_SUMMARY, a pull request's comment, a wiki. What
// decides stands on the first screen, in this order: the verdict; a table of scenarios and variants
// with outcome, phase and contract; what broke, with the events that prove it and the one command
// that repeats it; the figures that were judged; what was not observed. The rest is folded.
#pragma once

#include <cstddef>
#include <string>

#include "reports/markdown_document.h"
#include "reports/markdown_text.h"
#include "reports/report.h"

namespace warmgate::reports {

/// GitHub refuses a step's summary that is larger.
inline constexpr std::size_t kMarkdownLimit = 1024 * 1024;

/// At most `limit` bytes: entries that do not fit are left out whole, and the last line says how
/// many. Text of runs, logs and scenarios is masked and cannot be read as Markdown or HTML.
std::string markdown_report(const Report& report, std::size_t limit = kMarkdownLimit);

/// A screen of a pull request: what is not folded of a comparison (`ab`) is at most so many lines.
inline constexpr std::size_t kScreenLines = 60;
/// The same of a comparison of two variants; markdown_report() hands over to it.
std::string markdown_ab(const Report& report, std::size_t limit = kMarkdownLimit);

/// A variant with its scenario.
struct MarkdownEntry {
  const ScenarioReport* scenario = nullptr;
  const VariantReport* variant = nullptr;  // null: the scenario as a whole, nothing of it ran
};

/// "❌ FAIL"
std::string verdict_label(verdict::Verdict verdict);
/// What broke in a variant: its broken promises with their events, what the run said last, the
/// checks that failed, the command. One piece.
std::string finding_piece(const MarkdownText& text, const MarkdownEntry& entry);

/// The folded part: what passed, figures, comparisons, what was allowed, notes, not judged.
void add_markdown_details(MarkdownDocument& document, const MarkdownText& text,
                          const Report& report);

}  // namespace warmgate::reports
