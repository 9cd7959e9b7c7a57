#include "reports/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "reports/sections.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

using verdict::Verdict;

constexpr std::size_t kVerdictColumns = 12;  // "INCONCLUSIVE"

std::size_t verdict_columns(const ScenarioReport& scenario) {
  std::size_t widest = verdict::to_string(scenario.verdict).size();
  for (const VariantReport& v : scenario.variants)
    widest = std::max(widest, verdict::to_string(v.verdict.verdict).size());
  return std::min(widest, kVerdictColumns);
}

// "11 contracts kept", "9 kept, 1 broken, 1 not observed".
std::string contracts_text(const verdict::RunRecord& run) {
  std::map<contract::State, int> count;
  for (const contract::Result& result : run.contracts) ++count[result.state];
  std::string out;
  const auto add = [&](contract::State state, const char* word) {
    if (count[state] == 0) return;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count[state], word);
  };
  const bool only_kept = count[contract::State::kKept] == static_cast<int>(run.contracts.size());
  add(contract::State::kKept, only_kept ? "contracts kept" : "kept");
  add(contract::State::kBroken, "broken");
  add(contract::State::kNotObserved, "not observed");
  return out;
}

std::string behaviours_text(const VariantReport& variant) {
  std::string out;
  for (const std::string& b : variant.behaviours) out += (out.empty() ? "" : " + ") + b;
  return out;
}

void print_checks(Printer& out, std::size_t indent, const std::vector<verdict::Check>& checks,
                  Detail detail) {
  for (const verdict::Check& check : checks) {
    if (check.verdict != Verdict::kPass || detail == Detail::kVerbose)
      print_check(out, indent, check);
  }
}

// What proves that a run went wrong: broken promises, then what the run itself said.
void print_proof(Printer& out, std::size_t indent, const verdict::RunRecord& run, Detail detail) {
  const std::size_t most = detail == Detail::kVerbose ? 1000 : 4;
  for (const contract::Result& result : run.contracts) {
    if (result.state != contract::State::kBroken) continue;
    const auto groups = group_findings(result.findings);
    const std::size_t label = result.contract.size() + 2;
    for (std::size_t i = 0; i < groups.size() && i < most; ++i) {
      const std::string lead =
          i == 0 ? out.cell(result.contract, Tone::kStrong) + "  " : std::string(label, ' ');
      out.paragraph(indent, proof_text(groups[i]), Tone::kPlain, lead, label);
    }
    if (groups.size() > most) {
      out.row(indent + label,
              out.cell(fmt::format("and {} more; --verbose shows them", groups.size() - most),
                       Tone::kQuiet));
    }
  }
  if (run.outcome != verdict::Outcome::kPassed && !run.reason.empty())
    out.paragraph(indent, run.reason, Tone::kQuiet);
  if (run.outcome == verdict::Outcome::kPassed) return;
  std::size_t shown = 0;
  for (const verdict::Output& output : run.outputs) {
    for (const std::string& line : output.matched) {
      if (shown++ >= (detail == Detail::kVerbose ? 40u : 2u)) return;
      // A reason that quotes the line says it already.
      if (run.reason.find(line) != std::string::npos) continue;
      out.row(indent, out.cell(shorten(out.clean(fmt::format("rank {} {}: {}", output.rank,
                                                             output.stream, line)),
                                       out.style().width - indent, out.style().charset),
                               Tone::kQuiet));
    }
  }
}

void print_variant(Printer& out, const VariantReport& variant, std::size_t name_columns,
                   std::size_t word_columns, Detail detail) {
  const verdict::RunRecord* run = telling_run(variant);
  const std::size_t indent = 2 + word_columns + 2 + name_columns + 2;
  std::string head = out.cell(verdict::to_string(variant.verdict.verdict),
                              tone_of(variant.verdict.verdict), word_columns + 2) +
                     out.cell(variant.name, Tone::kStrong, name_columns + 2);
  std::string said = run ? outcome_text(*run) : "not run";
  const std::string disagreement = disagreement_text(variant);
  if (!disagreement.empty()) said = disagreement;
  const bool broke = run && run->outcome != verdict::Outcome::kPassed &&
                     run->outcome != verdict::Outcome::kSkipped;
  if (broke && variant.verdict.verdict == Verdict::kPass) said += ", as expected";
  head += out.cell(said, broke ? tone_of(variant.verdict.verdict) : Tone::kPlain);
  std::string rest;
  if (run && !run->contracts.empty()) rest += std::string(out.dot()) + contracts_text(*run);
  if (variant.runs.size() > 1 && disagreement.empty())
    rest += fmt::format("{}{} runs", out.dot(), variant.runs.size());
  if (!variant.behaviours.empty()) rest += std::string(out.dot()) + behaviours_text(variant);
  const std::size_t used = indent + columns(out.clean(said));
  if (used + columns(out.clean(rest)) <= out.style().width) {
    out.row(2, head + out.cell(rest, Tone::kQuiet));
  } else {
    out.row(2, head);
    out.paragraph(indent, rest.substr(std::min(rest.size(), out.dot().size())), Tone::kQuiet);
  }
  if (!run) {
    if (!variant.verdict.reason.empty())
      out.paragraph(indent, variant.verdict.reason, Tone::kQuiet);
    return;
  }
  print_proof(out, indent, *run, detail);
  const bool judged_well =
      variant.verdict.verdict == Verdict::kPass || variant.verdict.verdict == Verdict::kSkip;
  const bool checks_speak =
      std::any_of(variant.verdict.checks.begin(), variant.verdict.checks.end(),
                  [](const verdict::Check& c) { return c.verdict != Verdict::kPass; });
  print_checks(out, indent, variant.verdict.checks, detail);
  if ((!judged_well && !checks_speak) || variant.verdict.verdict == Verdict::kSkip) {
    if (!variant.verdict.reason.empty() && variant.verdict.reason != run->reason)
      out.paragraph(indent, variant.verdict.reason);
  }
  if (wants_command(variant) && !run->reproduce.empty())
    out.command(indent, "repeat:", run->reproduce);
}

bool is_quiet_good(Verdict verdict) {
  return verdict == Verdict::kPass || verdict == Verdict::kSkip;
}

}  // namespace

void print_check(Printer& out, std::size_t indent, const verdict::Check& check) {
  std::string text = check.what;
  if (!check.expected.empty()) text += ": expected " + check.expected;
  if (!check.seen.empty()) text += (check.expected.empty() ? ": " : ", seen ") + check.seen;
  if (!check.note.empty()) text += " (" + check.note + ")";
  const std::string_view word = verdict::to_string(check.verdict);
  out.paragraph(indent, text, Tone::kPlain, out.cell(word, tone_of(check.verdict)) + "  ",
                word.size() + 2);
}

void print_scenario(Printer& out, const ScenarioReport& scenario, Detail detail) {
  const std::size_t word = verdict_columns(scenario);
  std::size_t name = 1;
  for (const VariantReport& v : scenario.variants)
    name = std::max(name, std::min<std::size_t>(columns(out.clean(v.name)), 32));
  const std::string title =
      out.cell(verdict::to_string(scenario.verdict), tone_of(scenario.verdict), word + 2) +
      out.cell(scenario.name, Tone::kStrong);
  out.row(0, title + "  " + out.cell(scenario.path, Tone::kQuiet));
  if (!scenario.about.empty()) out.paragraph(word + 2, scenario.about);
  const std::string source = source_text(scenario.source);
  if (!source.empty()) out.paragraph(word + 2, source, Tone::kQuiet);
  for (const VariantReport& v : scenario.variants) print_variant(out, v, name, word, detail);
  print_checks(out, 2, scenario.checks, detail);
  if (!scenario.reason.empty() && !is_quiet_good(scenario.verdict) && scenario.variants.empty())
    out.paragraph(2, scenario.reason);
  print_comparisons(out, scenario, detail);
  print_figures(out, scenario, detail);
  print_allowed(out, scenario, detail);
  print_notes(out, scenario, detail);
  print_not_observed(out, scenario, detail);
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
    std::string names;
    for (const std::string& d : devices) names += (names.empty() ? "" : ", ") + d;
    std::string text = fmt::format(
        "Ran on warmgate's own engine, device {}: a behaviour is the rule of that pull request or "
        "revision as modelled here.",
        names);
    if (devices.count("meta") > 0)
      text += " On meta the contents of tensors, and so the sampled tokens, are synthetic.";
    out.paragraph(0, text, Tone::kQuiet);
  }
  std::map<Verdict, int> count;
  std::size_t variants = 0, runs = 0;
  for (const ScenarioReport& s : report.scenarios) {
    for (const VariantReport& v : s.variants) {
      ++variants;
      runs += v.runs.size();
      ++count[v.verdict.verdict];
    }
  }
  std::string counts;
  for (const Verdict v :
       {Verdict::kFail, Verdict::kInfra, Verdict::kInconclusive, Verdict::kSkip, Verdict::kPass}) {
    if (count[v] == 0) continue;
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count[v], verdict::to_string(v));
  }
  const std::string what =
      fmt::format("  {}: {} scenario{}, {} variant{}, {} run{} in {}{}", report.verb,
                  report.scenarios.size(), report.scenarios.size() == 1 ? "" : "s", variants,
                  variants == 1 ? "" : "s", runs, runs == 1 ? "" : "s",
                  duration_text(report.wall_s), counts.empty() ? "" : " (" + counts + ")");
  std::string tail = report.interrupted ? "; interrupted, what was seen so far" : "";
  if (report.exit_code == 0 && !is_quiet_good(report.verdict))
    tail += "; soft, so the exit code is 0";
  out.row(0, out.cell(verdict::to_string(report.verdict), tone_of(report.verdict)) +
                 out.cell(what + tail));
}

std::string terminal_report(const Report& report, const Style& style, Detail detail) {
  Printer out(style, report.secrets);
  for (const ScenarioReport& scenario : report.scenarios) {
    if (detail == Detail::kQuiet && is_quiet_good(scenario.verdict)) continue;
    print_scenario(out, scenario, detail);
    out.blank();
  }
  print_closing(out, report, detail);
  if (!is_quiet_good(report.verdict) && !report.command.empty())
    out.command(0, "repeat all:", report.command);
  return out.take();
}

}  // namespace warmgate::reports
