#include "reports/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/key_words.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

std::string join(const std::vector<std::string>& items, std::string_view by = ",") {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : std::string(by)) + item;
  return out;
}

// "label: text", hanging by two.
void print_labelled(Printer& out, const std::string& label, const std::string& text,
                    Tone tone = Tone::kPlain) {
  out.paragraph(4, text, Tone::kPlain, out.cell(label + ":", tone) + " ", 2,
                columns(out.clean(label)));
}

}  // namespace

void print_allowed(Printer& out, const ScenarioReport& scenario, Detail detail) {
  if (detail == Detail::kQuiet) return;
  struct Entry {
    std::string contract, reason, issue;
    std::set<std::string> where, keys;
    std::vector<std::string> variants;
    const verdict::RunRecord* run = nullptr;
  };
  std::vector<Entry> entries;
  for (const VariantReport& v : scenario.variants) {
    for (const verdict::RunRecord* run : v.runs) {
      for (const auto& allowed : run->allowed) {
        auto at = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) {
          return e.contract == allowed.finding.contract && e.reason == allowed.reason &&
                 e.issue == allowed.issue;
        });
        if (at == entries.end()) {
          entries.push_back(
              {allowed.finding.contract, allowed.reason, allowed.issue, {}, {}, {}, run});
          at = std::prev(entries.end());
        }
        if (!allowed.where.empty()) at->where.insert(allowed.where);
        at->keys.insert(allowed.finding.key.empty() ? allowed.finding.message
                                                    : allowed.finding.key);
        if (std::find(at->variants.begin(), at->variants.end(), v.name) == at->variants.end())
          at->variants.push_back(v.name);
      }
    }
  }
  if (entries.empty()) return;
  out.row(2, out.cell("allowed", Tone::kStrong));
  for (const Entry& e : entries) {
    std::string text = e.reason;
    if (!e.issue.empty()) text += " (" + e.issue + ")";
    print_labelled(out, e.contract,
                   fmt::format("{} in {}: {}", e.keys.size(), join(e.variants), text));
    const std::size_t most = detail == Detail::kVerbose ? e.keys.size() : 1;
    std::size_t shown = 0;
    for (const std::string& key : e.keys) {
      if (shown++ == most) break;
      std::string line = detail == Detail::kVerbose ? key : short_key({key}, e.run);
      if (e.keys.size() > most && shown == most)
        line += fmt::format(", and {} more", e.keys.size() - most);
      out.paragraph(6, line, Tone::kQuiet);
    }
    if (detail != Detail::kVerbose) continue;
    for (const std::string& where : e.where) out.paragraph(6, where, Tone::kQuiet);
  }
}

void print_notes(Printer& out, const ScenarioReport& scenario, Detail detail) {
  if (detail == Detail::kQuiet) return;
  // contract → finding text → variants, so that what all variants share is said once.
  std::map<std::string, std::map<std::string, std::vector<std::string>>> notes;
  for (const VariantReport& v : scenario.variants) {
    const verdict::RunRecord* run = telling_run(v);
    if (!run) continue;
    for (const contract::Result& result : run->contracts) {
      // What the other ranks said after the first one failed.
      if (result.contract == "starts" && detail != Detail::kVerbose) continue;
      for (const FindingGroup& group : group_findings(result.notes))
        notes[result.contract][proof_text(group, detail == Detail::kVerbose ? nullptr : run)]
            .push_back(v.name);
    }
  }
  if (notes.empty()) return;
  out.row(2, out.cell("notes", Tone::kStrong));
  for (const auto& [contract, texts] : notes) {
    std::size_t shown = 0;
    const std::size_t most = detail == Detail::kVerbose ? texts.size() : 2;
    for (const auto& [text, variants] : texts) {
      if (shown++ == most) break;
      std::string line = fmt::format("{}: {}", join(variants), text);
      if (texts.size() > most && shown == most)
        line += fmt::format(" (and {} more)", texts.size() - most);
      print_labelled(out, contract, line);
    }
  }
}

void print_not_judged(Printer& out, const ScenarioReport& scenario, Detail detail) {
  if (detail != Detail::kNormal) return;  // --verbose has them beside their variant
  // why → what → variants.
  std::map<std::string, std::map<std::string, std::vector<std::string>>> rows;
  for (const VariantReport& v : scenario.variants) {
    if (v.verdict.verdict == verdict::Verdict::kSkip) continue;
    for (const verdict::Check& check : v.verdict.checks) {
      if (check.verdict != verdict::Verdict::kSkip) continue;
      std::string why = check.note;
      if (why.rfind("not judged: ", 0) == 0) why.erase(0, 12);
      rows[why][check.what].push_back(v.name);
    }
  }
  if (rows.empty()) return;
  out.row(2, out.cell("not judged", Tone::kStrong));
  for (const auto& [why, whats] : rows) {
    // Rules of the same variants share a line.
    std::map<std::string, std::vector<std::string>> by_variants;
    for (const auto& [what, variants] : whats) by_variants[join(variants)].push_back(what);
    for (const auto& [variants, names] : by_variants)
      print_labelled(out, join(names, ", "), variants + (why.empty() ? "" : ": " + why));
  }
}

void print_not_observed(Printer& out, const ScenarioReport& scenario, Detail detail) {
  if (detail == Detail::kQuiet) return;
  // (variants, why) → contracts.
  std::map<std::string, std::map<std::string, std::vector<std::string>>> by_contract;
  for (const VariantReport& v : scenario.variants) {
    const verdict::RunRecord* run = telling_run(v);
    if (!run) continue;
    for (const contract::Result& result : run->contracts) {
      const bool unseen = result.state == contract::State::kNotObserved;
      if (!unseen &&
          (result.state != contract::State::kNotApplicable || detail != Detail::kVerbose))
        continue;
      std::string why = contract::why_not_observed(result);
      if (!unseen) why = "not applicable: " + why;
      by_contract[result.contract][why].push_back(v.name);
    }
  }
  if (by_contract.empty()) return;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> rows;
  for (const auto& [contract, whys] : by_contract) {
    for (const auto& [why, variants] : whys) rows[{join(variants), why}].push_back(contract);
  }
  out.row(2, out.cell("not observed", Tone::kStrong));
  for (const auto& [what, contracts] : rows)
    print_labelled(out, join(contracts, ", "), what.first + ": " + what.second);
}

void print_details(Printer& out, const ScenarioReport& scenario, bool brief, Detail detail) {
  Printer inner(out.style(), out.secrets());
  if (!brief) {
    print_comparisons(inner, scenario, detail);
    print_figures(inner, scenario, detail);
  }
  print_allowed(inner, scenario, detail);
  if (!brief) {
    print_notes(inner, scenario, detail);
    print_not_judged(inner, scenario, detail);
  }
  print_not_observed(inner, scenario, detail);
  const std::string text = inner.take();
  if (text.empty()) return;
  out.row(0, out.cell(scenario.name, Tone::kStrong));
  out.append(text);
  out.blank();
}

void print_check(Printer& out, std::size_t indent, const verdict::Check& check,
                 const verdict::RunRecord* run) {
  std::string text = check.what;
  if (!check.expected.empty()) text += ": expected " + check.expected;
  if (!check.seen.empty()) text += (check.expected.empty() ? ": " : ", seen ") + check.seen;
  if (!check.note.empty() && (!run || check.note != run->reason)) text += " (" + check.note + ")";
  const std::string_view word = verdict::to_string(check.verdict);
  out.paragraph(indent, text, Tone::kPlain, out.cell(word, tone_of(check.verdict)) + "  ",
                word.size() + 2);
}

void print_comparisons(Printer& out, const ScenarioReport& scenario, Detail detail) {
  // (contract, state) → what was compared; equal findings are said once.
  struct Row {
    std::vector<std::string> sides;
    std::vector<std::string> texts;
    std::size_t findings = 0;
  };
  std::map<std::pair<std::string, contract::State>, Row> rows;
  for (const contract::Result& result : scenario.comparisons) {
    if (detail == Detail::kQuiet && result.state != contract::State::kBroken) continue;
    if (detail != Detail::kVerbose && result.state == contract::State::kNotApplicable) continue;
    Row& row = rows[{result.contract, result.state}];
    std::string side = result.why;
    if (!result.missing.empty()) side += " (missing " + join(result.missing, ", ") + ")";
    if (!side.empty()) row.sides.push_back(side);
    for (const auto* list : {&result.findings, &result.notes}) {
      for (const FindingGroup& group : group_findings(*list)) {
        ++row.findings;
        const std::string text = proof_text(group);
        if (std::find(row.texts.begin(), row.texts.end(), text) == row.texts.end())
          row.texts.push_back(text);
      }
    }
  }
  if (rows.empty()) return;
  out.row(2, out.cell("comparisons", Tone::kStrong));
  for (const auto& [what, row] : rows) {
    const bool broken = what.second == contract::State::kBroken;
    std::string text(contract::to_string(what.second));
    std::replace(text.begin(), text.end(), '_', ' ');
    if (!row.sides.empty()) text += ": " + join(row.sides, "; ");
    print_labelled(out, what.first, text, broken ? Tone::kBad : Tone::kPlain);
    const std::size_t most = detail == Detail::kVerbose ? row.texts.size() : 3;
    for (std::size_t i = 0; i < row.texts.size() && i < most; ++i) out.paragraph(6, row.texts[i]);
    if (row.texts.size() > most)
      out.row(6, out.cell(fmt::format("and {} more", row.texts.size() - most), Tone::kQuiet));
  }
}

}  // namespace warmgate::reports
