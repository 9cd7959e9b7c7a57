#include "reports/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/artefacts.h"
#include "reports/key_words.h"
#include "reports/sections.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

using verdict::Verdict;

/// With more scenarios than this only those that did not pass get their figures and notes.
constexpr std::size_t kFewScenarios = 4;

std::size_t verdict_columns(const ScenarioReport& scenario) {
  std::size_t widest = verdict::to_string(scenario.verdict).size();
  for (const VariantReport& v : scenario.variants)
    widest = std::max(widest, verdict::to_string(v.verdict.verdict).size());
  return widest;
}

std::string behaviours_text(const VariantReport& variant) {
  std::string out;
  for (const std::string& b : variant.behaviours) out += (out.empty() ? "" : " + ") + b;
  return out;
}

// The groups that were not shown, by their keys.
std::string rest_text(const std::vector<FindingGroup>& groups, std::size_t shown,
                      const verdict::RunRecord& run) {
  std::string keys;
  for (std::size_t i = shown; i < groups.size(); ++i) {
    if (groups[i].keys.empty()) continue;
    keys += (keys.empty() ? "" : ", ") + short_key(groups[i].keys, &run);
  }
  std::string out = fmt::format("and {} more", groups.size() - shown);
  return keys.empty() || keys.size() > 240 ? out + "; --verbose shows them" : out + ": " + keys;
}

void print_broken(Printer& out, std::size_t indent, const contract::Result& result,
                  const verdict::RunRecord& run, Detail detail) {
  const auto groups = group_findings(result.findings);
  const std::size_t most = detail == Detail::kVerbose || groups.size() < 3 ? groups.size() : 1;
  for (std::size_t i = 0; i < groups.size() && i < most; ++i) {
    const std::string lead =
        i == 0 ? out.cell(result.contract + ":", Tone::kStrong) + " " : std::string(2, ' ');
    out.paragraph(indent, proof_text(groups[i], detail == Detail::kVerbose ? nullptr : &run),
                  Tone::kPlain, lead, 2, i == 0 ? columns(out.clean(result.contract)) : 0);
  }
  if (groups.size() > most) out.paragraph(indent + 2, rest_text(groups, most, run), Tone::kQuiet);
}

// What proves that a run went wrong: broken promises, then what the run itself said.
void print_proof(Printer& out, std::size_t indent, const verdict::RunRecord& run, Detail detail) {
  bool proved = false;
  for (const contract::Result& result : run.contracts) {
    if (result.state != contract::State::kBroken) continue;
    if (!tells_more(result, run) && detail != Detail::kVerbose) continue;
    print_broken(out, indent, result, run, detail);
    proved = true;
  }
  const bool repeats_proof = proved && run.outcome == verdict::Outcome::kFailed;
  if (run.outcome == verdict::Outcome::kPassed) return;
  if (!run.reason.empty() && (!repeats_proof || detail == Detail::kVerbose))
    out.paragraph(indent, run.reason, Tone::kQuiet);
  std::size_t shown = 0;
  for (const verdict::Output& output : run.outputs) {
    for (const std::string& line : output.matched) {
      if (shown >= (detail == Detail::kVerbose ? 40u : 2u)) return;
      // A reason that quotes the line says it already.
      if (run.reason.find(line) != std::string::npos) continue;
      ++shown;
      const std::string text =
          out.clean(fmt::format("rank {} {}: {}", output.rank, output.stream, line));
      out.row(indent, out.cell(shorten(text, out.style().width - indent, out.style().charset),
                               Tone::kQuiet));
    }
  }
}

// The variant's line: verdict, name, what happened, how much was kept, what it was.
void print_headline(Printer& out, const VariantReport& variant, const verdict::RunRecord* run,
                    std::size_t word_columns, std::size_t name_columns, std::size_t indent) {
  std::string head = out.cell(verdict::to_string(variant.verdict.verdict),
                              tone_of(variant.verdict.verdict), word_columns + 2) +
                     out.cell(variant.name, Tone::kStrong, name_columns + 2);
  std::string said = disagreement_text(variant);
  if (said.empty()) said = run ? outcome_text(*run) : "not run";
  const bool broke = run && run->outcome != verdict::Outcome::kPassed &&
                     run->outcome != verdict::Outcome::kSkipped;
  if (broke && variant.verdict.verdict == Verdict::kPass) said += ", as expected";
  head += out.cell(said, broke ? tone_of(variant.verdict.verdict) : Tone::kPlain);
  std::string rest;
  if (variant.runs.size() > 1) rest += fmt::format("{}{} runs", out.dot(), variant.runs.size());
  if (run && !run->contracts.empty()) rest += std::string(out.dot()) + contracts_text(*run);
  if (!variant.behaviours.empty()) rest += std::string(out.dot()) + behaviours_text(variant);
  const std::size_t used = indent + columns(out.clean(said));
  if (used + columns(out.clean(rest)) <= out.style().width) {
    out.row(2, head + out.cell(rest, Tone::kQuiet));
  } else {
    out.row(2, head);
    out.paragraph(indent, rest.substr(std::min(rest.size(), out.dot().size())), Tone::kQuiet);
  }
}

void print_variant(Printer& out, const VariantReport& variant, std::size_t name_columns,
                   std::size_t word_columns, Detail detail) {
  const verdict::RunRecord* run = telling_run(variant);
  const std::size_t indent = 2 + word_columns + 2 + name_columns + 2;
  print_headline(out, variant, run, word_columns, name_columns, indent);
  const verdict::RunVerdict& verdict = variant.verdict;
  if (run) print_proof(out, indent, *run, detail);
  bool explained = false;
  for (const verdict::Check& check : verdict.checks) {
    const bool speaks = !is_good(check.verdict);
    explained = explained || speaks;
    if (speaks || detail == Detail::kVerbose) print_check(out, indent, check, run);
  }
  if (!explained && (verdict.verdict != Verdict::kPass || !run) && !verdict.reason.empty() &&
      (!run || verdict.reason != run->reason))
    out.paragraph(indent, verdict.reason, Tone::kQuiet);
  if (run && wants_command(variant) && !run->reproduce.empty())
    out.command(indent, "repeat:", run->reproduce);
}

void print_counts(Printer& out, const Report& report) {
  const std::string what = counts_text(report);
  const std::string_view word = verdict::to_string(report.verdict);
  out.paragraph(0, what, Tone::kPlain, out.cell(word, tone_of(report.verdict)) + "  ",
                word.size() + 2);
}

}  // namespace

void print_summary(Printer& out, const ScenarioReport& scenario, Detail detail) {
  const std::size_t word = verdict_columns(scenario);
  std::size_t name = 1;
  for (const VariantReport& v : scenario.variants)
    name = std::max(name, std::min<std::size_t>(columns(out.clean(v.name)), 32));
  out.row(0, out.cell(verdict::to_string(scenario.verdict), tone_of(scenario.verdict), word + 2) +
                 out.cell(scenario.name, Tone::kStrong) + "  " +
                 out.cell(scenario.path, Tone::kQuiet));
  const bool ran = !scenario.variants.empty();
  if (ran && !scenario.about.empty()) out.paragraph(word + 2, scenario.about);
  const std::string source = source_text(scenario.source);
  if (ran && !source.empty()) out.paragraph(word + 2, source, Tone::kQuiet);
  print_artefacts(out, scenario, detail);
  for (const VariantReport& v : scenario.variants) print_variant(out, v, name, word, detail);
  for (const verdict::Check& check : scenario.checks) {
    if (!is_good(check.verdict) || detail == Detail::kVerbose) print_check(out, 2, check, nullptr);
  }
  if (ran && !scenario.selection.empty() && detail != Detail::kQuiet)
    out.paragraph(word + 2, "runs because " + scenario.selection, Tone::kQuiet);
  if (!ran && !scenario.reason.empty()) out.paragraph(2, scenario.reason);
}

void print_closing(Printer& out, const Report& report, Detail detail) {
  if (!report.not_observed.empty()) {
    out.row(0, out.cell("not observed on this machine", Tone::kStrong));
    for (const std::string& line : report.not_observed) out.paragraph(2, line);
  }
  std::set<std::string> devices;
  for (const ScenarioReport& s : report.scenarios) {
    for (const VariantReport& v : s.variants) {
      if (v.modelled && !v.runs.empty()) devices.insert(v.device.empty() ? "meta" : v.device);
    }
  }
  if (!devices.empty() && detail != Detail::kQuiet) {
    std::string text = fmt::format(
        "Ran on warmgate's own engine, device {}: a behaviour is the rule of that pull request or "
        "revision as modelled here.",
        fmt::join(devices, ", "));
    if (devices.count("meta") > 0)
      text += " On meta the contents of tensors, and so the sampled tokens, are synthetic.";
    out.paragraph(0, text, Tone::kQuiet);
  }
  print_counts(out, report);
}

std::string terminal_report(const Report& report, const Style& style, Detail detail) {
  Printer out(style, report.secrets);
  for (const ScenarioReport& scenario : report.scenarios) {
    if (detail == Detail::kQuiet && is_good(scenario.verdict)) continue;
    print_summary(out, scenario, detail);
    out.blank();
  }
  for (const ScenarioReport& scenario : report.scenarios) {
    if (detail == Detail::kQuiet) break;
    const bool brief = detail == Detail::kNormal && report.scenarios.size() > kFewScenarios &&
                       is_good(scenario.verdict);
    print_details(out, scenario, brief, detail);
  }
  print_closing(out, report, detail);
  if (!is_good(report.verdict) && !report.command.empty())
    out.command(0, "repeat all:", report.command);
  return out.take();
}

}  // namespace warmgate::reports
