// A comparison of two variants on one screen of a pull request: the verdict, the evidence table,
// what broke, what was not observed, how to repeat it; logs and the rest are folded.
#include <fmt/format.h>

#include "reports/artefacts.h"
#include "reports/evidence.h"
#include "reports/markdown.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

// With these, what is not folded is at most kScreenLines lines.
constexpr std::size_t kMostShownRows = 26, kMostShownFindings = 5, kMostShownUnseen = 5;

std::string joined_by(const std::vector<std::string>& items, std::string_view by) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : std::string(by)) + item;
  return out;
}

void add_ab_row(MarkdownDocument& document, const MarkdownText& text, const EvidenceRow& row) {
  std::vector<std::string> cells = {text.prose(row.label, 60)};
  for (const EvidenceCell& cell : row.cells)
    cells.push_back(cell.observed() ? text.code(cell.text, 160) : "not observed");
  document.row(cells);
}

void add_ab_evidence(MarkdownDocument& document, const MarkdownText& text, const ScenarioReport& s,
                     const EvidenceTable& table) {
  std::vector<std::string> heads = {" "};
  for (const std::string& side : table.sides) heads.push_back(text.code(side, 60));
  document.table(heads);
  std::vector<std::string> behaviours = {"behaviours"};
  bool any = false;
  for (const VariantReport& v : s.variants) {
    behaviours.push_back(text.code(joined_by(v.behaviours, " + "), 160));
    any = any || !v.behaviours.empty();
  }
  if (any) document.row(behaviours);
  std::vector<const EvidenceRow*> rest;
  std::size_t shown = any ? 1 : 0;
  for (const EvidenceRow& row : table.rows) {
    if (!row.observed()) continue;
    if (shown++ < kMostShownRows) {
      add_ab_row(document, text, row);
    } else {
      rest.push_back(&row);
    }
  }
  if (rest.empty()) return;
  document.begin_details(fmt::format("{} more rows", rest.size()));
  document.table(heads);
  for (const EvidenceRow* row : rest) add_ab_row(document, text, *row);
  document.end_details();
}

void add_ab_findings(MarkdownDocument& document, const MarkdownText& text,
                     const ScenarioReport& s) {
  std::vector<std::string> lines;
  for (const verdict::Check& check : s.checks) {
    if (is_good(check.verdict)) continue;
    std::string line = verdict_label(check.verdict) + " " + text.code(check.what, 80);
    if (!check.expected.empty()) line += ": expected " + text.code(check.expected, 100);
    if (!check.seen.empty()) line += ", seen " + text.code(check.seen, 100);
    lines.push_back(std::move(line));
  }
  for (const VariantReport& v : s.variants) {
    const verdict::RunRecord* run = telling_run(v);
    if (!run) continue;
    for (const contract::Result& result : run->contracts) {
      if (result.state != contract::State::kBroken || !tells_more(result, *run)) continue;
      for (const FindingGroup& group : group_findings(result.findings))
        lines.push_back(fmt::format("{} breaks {}: {}", text.code(v.name, 40),
                                    text.code(result.contract, 60),
                                    text.code(proof_text(group, run), 240)));
    }
  }
  for (std::size_t i = 0; i < lines.size() && i < kMostShownFindings; ++i) document.item(lines[i]);
  if (lines.size() <= kMostShownFindings) return;
  document.begin_details(fmt::format("{} more findings", lines.size() - kMostShownFindings));
  for (std::size_t i = kMostShownFindings; i < lines.size(); ++i) document.item(lines[i]);
  document.end_details();
}

void add_ab_unseen(MarkdownDocument& document, const MarkdownText& text,
                   const EvidenceTable& table) {
  const std::vector<Unseen> all = unseen(table);
  if (all.empty()) return;
  const auto line = [&](const Unseen& one) {
    std::vector<std::string> sides;
    for (const std::size_t side : one.sides) sides.push_back(text.code(table.sides[side], 40));
    return fmt::format("not observed in {} because {}: {}", joined_by(sides, ", "),
                       text.code(one.why, 120), text.prose(joined_by(one.labels, ", "), 400));
  };
  for (std::size_t i = 0; i < all.size() && i < kMostShownUnseen; ++i) document.item(line(all[i]));
  if (all.size() <= kMostShownUnseen) return;
  document.begin_details(
      fmt::format("{} more that was not observed", all.size() - kMostShownUnseen));
  for (std::size_t i = kMostShownUnseen; i < all.size(); ++i) document.item(line(all[i]));
  document.end_details();
}

}  // namespace

std::string markdown_ab(const Report& report, std::size_t limit) {
  const MarkdownText text(report.secrets);
  MarkdownDocument document(limit);
  const ScenarioReport& s = report.scenarios.front();
  const EvidenceTable table = evidence_of(s);
  document.piece(fmt::format("## {} · {}: {} against {}", verdict_label(s.verdict),
                             text.code(s.name, 80), text.code(s.variants[1].name, 40),
                             text.code(s.variants[0].name, 40)));
  if (!s.reason.empty()) document.piece(text.prose(s.reason, 300));
  // In a word; the identities and the lists are folded.
  bool any = false;
  for (const verdict::ArtefactDifference& difference : artefact_differences(s)) {
    any = true;
    document.item("artefacts: " + text.code(difference_text(difference), 200));
  }
  add_ab_evidence(document, text, s, table);
  add_ab_findings(document, text, s);
  add_ab_unseen(document, text, table);
  if (any) {
    document.begin_details("artefacts and how they differ");
    add_artefacts(document, text, report);
    document.end_details();
  }
  for (const LogExcerpt& excerpt : table.excerpts) {
    document.begin_details(fmt::format("log of {}, {}", text.html(table.sides[excerpt.side], 40),
                                       text.html(excerpt.source, 80)));
    document.piece(text.block("text", excerpt.lines, kExcerptColumns));
    document.end_details();
  }
  if (!report.command.empty()) document.piece(text.block("sh", {report.command}, 20000));
  add_markdown_details(document, text, report);
  return document.take();
}

}  // namespace warmgate::reports
