#include "reports/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/artefacts.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

using verdict::Verdict;

// As much as a screen takes; the others are folded.
constexpr std::size_t kMostRows = 24, kMostFindings = 8, kMostChecks = 12;

std::vector<MarkdownEntry> entries_of(const Report& report) {
  std::vector<MarkdownEntry> out;
  for (const ScenarioReport& s : report.scenarios) {
    if (s.variants.empty()) out.push_back({&s, nullptr});
    for (const VariantReport& v : s.variants) out.push_back({&s, &v});
  }
  return out;
}

Verdict verdict_of(const MarkdownEntry& e) {
  return e.variant ? e.variant->verdict.verdict : e.scenario->verdict;
}

bool broke(const MarkdownEntry& e) {
  const verdict::RunRecord* run = e.variant ? telling_run(*e.variant) : nullptr;
  return run && run->outcome != verdict::Outcome::kPassed &&
         run->outcome != verdict::Outcome::kSkipped;
}

std::string broken_contracts(const MarkdownText& text, const verdict::RunRecord& run) {
  std::string out;
  for (const contract::Result& result : run.contracts) {
    if (result.state == contract::State::kBroken)
      out += (out.empty() ? "" : ", ") + text.code(result.contract, 60);
  }
  return out.empty() ? "–" : out;
}

void add_row(MarkdownDocument& document, const MarkdownText& text, const MarkdownEntry& e) {
  const std::string scenario = text.code(e.scenario->name, 80);
  std::string label = verdict_label(verdict_of(e));
  const verdict::RunRecord* run = e.variant ? telling_run(*e.variant) : nullptr;
  if (!run) {
    document.row(
        {scenario, e.variant ? text.code(e.variant->name, 80) : "–", label, "not run", "–", "–"});
    return;
  }
  if (broke(e) && verdict_of(e) == Verdict::kPass) label += ", as expected";
  std::string outcome = disagreement_text(*e.variant);
  if (outcome.empty()) outcome = outcome_text(*run);
  // The phase has a column of its own.
  if (const std::size_t at = outcome.find(" in " + run->phase);
      at != std::string::npos && !run->phase.empty() && e.variant->runs.size() == 1)
    outcome.erase(at, 4 + run->phase.size());
  document.row({scenario, text.code(e.variant->name, 80), label, text.code(outcome, 120),
                text.code(run->phase, 40), broken_contracts(text, *run)});
}

void add_table(MarkdownDocument& document, const MarkdownText& text,
               const std::vector<MarkdownEntry>& entries) {
  const std::vector<std::string> heads = {"scenario", "variant", "verdict",
                                          "outcome",  "phase",   "contract"};
  std::vector<MarkdownEntry> shown, folded;
  for (const bool good : {false, true}) {
    for (const MarkdownEntry& e : entries) {
      if (is_good(verdict_of(e)) != good) continue;
      (shown.size() < kMostRows && (!good || entries.size() <= kMostRows) ? shown : folded)
          .push_back(e);
    }
  }
  document.table(heads);
  for (const MarkdownEntry& e : shown) add_row(document, text, e);
  if (folded.empty()) return;
  std::map<Verdict, int> count;
  for (const MarkdownEntry& e : folded) ++count[verdict_of(e)];
  std::string summary;
  for (const auto& [verdict, n] : count)
    summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", n, verdict::to_string(verdict));
  document.begin_details(
      fmt::format("{}{} ({})", shown.empty() ? "all " : "and ", folded.size(), summary));
  document.table(heads);
  for (const MarkdownEntry& e : folded) add_row(document, text, e);
  document.end_details();
}

void add_findings(MarkdownDocument& document, const MarkdownText& text,
                  const std::vector<MarkdownEntry>& entries) {
  std::vector<MarkdownEntry> bad, expected;
  for (const MarkdownEntry& e : entries) {
    if (!e.variant) continue;
    if (!is_good(verdict_of(e)))
      bad.push_back(e);
    else if (broke(e))
      expected.push_back(e);
  }
  if (!bad.empty()) document.piece("### Findings");
  for (std::size_t i = 0; i < bad.size(); ++i) {
    if (i == kMostFindings)
      document.begin_details(fmt::format("and {} more that broke", bad.size() - i));
    document.piece(finding_piece(text, bad[i]));
  }
  document.end_details();
  if (expected.empty()) return;
  document.begin_details(fmt::format("{} broke as expected", expected.size()));
  for (const MarkdownEntry& e : expected) document.piece(finding_piece(text, e));
  document.end_details();
}

// Figures and rules of `gate`, and what was found wrong with scenarios as a whole.
void add_checks(MarkdownDocument& document, const MarkdownText& text, const Report& report) {
  struct Line {
    const ScenarioReport* scenario;
    std::string variant;
    const verdict::Check* check;
  };
  std::vector<Line> lines;
  for (const bool good : {false, true}) {
    for (const ScenarioReport& s : report.scenarios) {
      const auto take = [&](const std::string& variant, const verdict::Check& check, bool always) {
        const bool judged =
            always || check.what.rfind("figure ", 0) == 0 || check.what.rfind("gate ", 0) == 0;
        if (judged && check.verdict != Verdict::kSkip && is_good(check.verdict) == good)
          lines.push_back({&s, variant, &check});
      };
      for (const verdict::Check& check : s.checks) take("", check, true);
      for (const VariantReport& v : s.variants) {
        for (const verdict::Check& check : v.verdict.checks) take(v.name, check, false);
      }
    }
  }
  if (lines.empty()) return;
  const std::vector<std::string> heads = {"scenario", "variant", "what",
                                          "expected", "seen",    "verdict"};
  const auto add = [&](const Line& line) {
    const verdict::Check& check = *line.check;
    std::string label = verdict_label(check.verdict);
    if (!check.note.empty() && !is_good(check.verdict)) label += ": " + text.code(check.note, 200);
    document.row({text.code(line.scenario->name, 80), text.code(line.variant, 80),
                  text.code(check.what, 120), text.code(check.expected, 120),
                  text.code(check.seen, 120), label});
  };
  // Those that decided against something are on the screen; many that are as asked are not.
  std::size_t shown = 0;
  while (shown < lines.size() && !is_good(lines[shown].check->verdict)) ++shown;
  shown = lines.size() <= kMostChecks ? lines.size() : std::min(shown, kMostChecks);
  if (shown > 0) {
    document.piece("### Judged figures");
    document.table(heads);
    for (std::size_t i = 0; i < shown; ++i) add(lines[i]);
  }
  if (shown == lines.size()) return;
  document.begin_details(
      fmt::format("{}{} judged figures", lines.size() - shown, shown > 0 ? " more" : ""));
  document.table(heads);
  for (std::size_t i = shown; i < lines.size(); ++i) add(lines[i]);
  document.end_details();
}

void add_not_observed(MarkdownDocument& document, const MarkdownText& text, const Report& report) {
  // why → contracts → where, so that a reason that holds everywhere is said once.
  struct Where {
    std::size_t variants = 0;
    std::string first;
  };
  std::map<std::string, std::map<std::string, Where>> whys;
  for (const MarkdownEntry& e : entries_of(report)) {
    const verdict::RunRecord* run = e.variant ? telling_run(*e.variant) : nullptr;
    for (const contract::Result& result : run ? run->contracts : std::vector<contract::Result>{}) {
      if (result.state != contract::State::kNotObserved) continue;
      const std::string why = contract::why_not_observed(result);
      Where& where = whys[why][result.contract];
      if (++where.variants == 1) where.first = e.scenario->name + " " + e.variant->name;
    }
  }
  if (whys.empty() && report.not_observed.empty()) return;
  document.piece("### Not observed");
  for (const std::string& line : report.not_observed)
    document.item("on this machine: " + text.code(line));
  for (const auto& [why, contracts] : whys) {
    std::string names, first;
    std::size_t most = 0;
    for (const auto& [contract, where] : contracts) {
      names += (names.empty() ? "" : ", ") + text.code(contract, 60);
      most = std::max(most, where.variants);
      if (first.empty()) first = where.first;
    }
    std::string line = fmt::format("{}: {} · {}", names, text.code(why), text.code(first, 120));
    if (most > 1) line += fmt::format(" and {} more", most - 1);
    document.item(line);
  }
}

}  // namespace

std::string verdict_label(Verdict verdict) {
  std::string_view mark;
  switch (verdict) {
    case Verdict::kPass:
      mark = "✅";
      break;
    case Verdict::kFail:
      mark = "❌";
      break;
    case Verdict::kInconclusive:
      mark = "❓";
      break;
    case Verdict::kInfra:
      mark = "🔧";
      break;
    case Verdict::kSkip:
      mark = "⏭️";
      break;
  }
  return fmt::format("{} {}", mark, verdict::to_string(verdict));
}

std::string markdown_report(const Report& report, std::size_t limit) {
  if (report.verb == "ab" && report.scenarios.size() == 1 &&
      report.scenarios.front().variants.size() == 2)
    return markdown_ab(report, limit);
  const MarkdownText text(report.secrets);
  MarkdownDocument document(limit);
  document.piece(fmt::format("## {} · warmgate {}", verdict_label(report.verdict),
                             text.prose(counts_text(report), 300)));
  if (report.scenarios.size() == 1 && !report.scenarios.front().reason.empty())
    document.piece(text.prose(report.scenarios.front().reason));
  const std::vector<MarkdownEntry> entries = entries_of(report);
  add_artefacts(document, text, report);
  add_table(document, text, entries);
  add_findings(document, text, entries);
  add_checks(document, text, report);
  add_not_observed(document, text, report);
  add_markdown_details(document, text, report);
  if (!report.command.empty())
    document.piece("Repeat all:\n\n" + text.block("sh", {report.command}, 20000));
  return document.take();
}

}  // namespace warmgate::reports
