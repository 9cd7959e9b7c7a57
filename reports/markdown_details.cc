#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/trace/vocabulary.h"
#include "reports/markdown.h"
#include "reports/text.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

using verdict::Verdict;

constexpr std::size_t kMostGroups = 5, kMostEvents = 3, kMostDetailLines = 8;

std::string event_text(const trace::Event& e) {
  return fmt::format(
      "{}:{} {} {}", e.source, e.line, e.ev,
      e.body.to_json().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string group_lines(const MarkdownText& text, const contract::Result& result,
                        const verdict::RunRecord& run) {
  std::string out;
  const auto groups = group_findings(result.findings);
  for (std::size_t i = 0; i < groups.size() && i < kMostGroups; ++i) {
    out += fmt::format("- {}: {}\n", text.code(result.contract, 60),
                       text.code(proof_text(groups[i], &run)));
    std::size_t shown = 0;
    for (const std::size_t index : groups[i].first->events) {
      if (index >= run.trace.events.size() || shown++ == kMostEvents) break;
      out += "  - " + text.code(event_text(run.trace.events[index]), 300) + "\n";
    }
  }
  if (groups.size() > kMostGroups)
    out += fmt::format("- {}: and {} more\n", text.code(result.contract, 60),
                       groups.size() - kMostGroups);
  return out;
}

void add_selection(MarkdownDocument& document, const MarkdownText& text, const Report& report) {
  document.begin_details("which scenarios the changed files touch");
  document.table({"scenario", "runs", "because"});
  for (const ScenarioReport& s : report.scenarios) {
    if (!s.selection.empty())
      document.row(
          {text.code(s.name, 80), s.variants.empty() ? "no" : "yes", text.code(s.selection, 300)});
  }
  document.end_details();
}

std::string value_text(const VariantReport& variant, const std::string& name) {
  std::vector<double> values;
  std::string unit;
  for (const verdict::RunRecord* run : variant.runs) {
    const auto it = run->figures.find(name);
    if (it != run->figures.end()) values.push_back(it->second);
    const auto info = run->figure_info.find(name);
    if (info != run->figure_info.end()) unit = info->second.unit;
  }
  if (values.empty()) return "";
  std::sort(values.begin(), values.end());
  std::string out = figure_text(name, values[values.size() / 2], unit, false);
  return values.front() == values.back() ? out : out + " (median)";
}

// A row a figure, a column a variant; a scenario with very many variants gets several tables.
void add_figures(MarkdownDocument& document, const MarkdownText& text, const ScenarioReport& s) {
  constexpr std::size_t kColumns = 6;
  std::set<std::string> present;
  for (const VariantReport& v : s.variants) {
    for (const verdict::RunRecord* run : v.runs) {
      for (const auto& [name, value] : run->figures) present.insert(name);
    }
  }
  if (present.empty()) return;
  std::vector<std::string> names;
  for (const trace::FigureRule& rule : trace::figures()) {
    if (present.erase(std::string(rule.name)) > 0) names.emplace_back(rule.name);
  }
  names.insert(names.end(), present.begin(), present.end());
  document.begin_details("figures of " + text.html(s.name));
  for (std::size_t from = 0; from < s.variants.size(); from += kColumns) {
    const std::size_t to = std::min(from + kColumns, s.variants.size());
    std::vector<std::string> heads = {"figure"};
    for (std::size_t i = from; i < to; ++i) heads.push_back(text.code(s.variants[i].name, 60));
    document.table(heads);
    for (const std::string& name : names) {
      std::vector<std::string> cells = {text.code(name, 80)};
      for (std::size_t i = from; i < to; ++i)
        cells.push_back(text.code(value_text(s.variants[i], name), 60));
      document.row(cells);
    }
  }
  document.end_details();
}

void add_comparisons(MarkdownDocument& document, const MarkdownText& text, const Report& report) {
  document.begin_details("comparisons between variants, and with what was accepted");
  for (const ScenarioReport& s : report.scenarios) {
    for (const contract::Result& result : s.comparisons) {
      if (result.state == contract::State::kNotApplicable) continue;
      std::string line =
          fmt::format("{} {}: {} {}", text.code(s.name, 80), text.code(result.contract, 60),
                      text.code(contract::to_string(result.state), 40), text.code(result.why, 200));
      for (const FindingGroup& group : group_findings(result.findings))
        line += "\n  - " + text.code(proof_text(group));
      document.item(line);
    }
  }
  document.end_details();
}

// What many variants share is said once: text → variants.
using Shared = std::map<std::string, std::vector<std::string>>;

void add_shared(MarkdownDocument& document, const MarkdownText& text, const char* summary,
                const Shared& lines) {
  document.begin_details(fmt::format("{} ({})", summary, lines.size()));
  for (const auto& [line, variants] : lines) {
    std::string where = text.code(variants.front(), 120);
    if (variants.size() > 1) where += fmt::format(" and {} more", variants.size() - 1);
    document.item(fmt::format("{} · {}", text.code(line), where));
  }
  document.end_details();
}

void add_lists(MarkdownDocument& document, const MarkdownText& text, const Report& report) {
  Shared allowed, notes, not_judged;
  for (const ScenarioReport& s : report.scenarios) {
    for (const VariantReport& v : s.variants) {
      const std::string who = s.name + " " + v.name;
      const auto add = [&](Shared& to, const std::string& line) {
        std::vector<std::string>& variants = to[line];
        if (variants.empty() || variants.back() != who) variants.push_back(who);
      };
      for (const verdict::Check& check : v.verdict.checks) {
        if (check.verdict == Verdict::kSkip) add(not_judged, check.what + ": " + check.note);
      }
      const verdict::RunRecord* run = telling_run(v);
      if (!run) continue;
      for (const auto& entry : run->allowed) {
        const std::string& key =
            entry.finding.key.empty() ? entry.finding.message : entry.finding.key;
        add(allowed, fmt::format("{}: {}: {}{}", entry.finding.contract, key, entry.reason,
                                 entry.issue.empty() ? "" : " (" + entry.issue + ")"));
      }
      for (const contract::Result& result : run->contracts) {
        for (const FindingGroup& group : group_findings(result.notes))
          add(notes, result.contract + ": " + proof_text(group, run));
      }
    }
  }
  add_shared(document, text, "allowed", allowed);
  add_shared(document, text, "not judged", not_judged);
  add_shared(document, text, "notes", notes);
}

void add_model(MarkdownDocument& document, const MarkdownText& text, const Report& report) {
  std::set<std::string> devices;
  for (const ScenarioReport& s : report.scenarios) {
    for (const VariantReport& v : s.variants) {
      if (v.modelled && !v.runs.empty()) devices.insert(v.device == "" ? "meta" : v.device);
    }
  }
  if (devices.empty()) return;
  std::string names;
  for (const std::string& device : devices)
    names += (names.empty() ? "" : ", ") + text.code(device, 20);
  std::string line = "Ran on warmgate's own engine, device " + names +
                     ": a behaviour is the rule of that pull request or revision as modelled here.";
  if (devices.count("meta") > 0)
    line += " On `meta` the contents of tensors, and so the sampled tokens, are synthetic.";
  document.piece(line);
}

}  // namespace

std::string finding_piece(const MarkdownText& text, const MarkdownEntry& entry) {
  const VariantReport& v = *entry.variant;
  const verdict::RunRecord* run = telling_run(v);
  std::string said = disagreement_text(v);
  if (said.empty()) said = run ? outcome_text(*run) : "not run";
  std::string out =
      fmt::format("#### {} {} {}: {}\n\n", verdict_label(v.verdict.verdict),
                  text.code(entry.scenario->name, 80), text.code(v.name, 80), text.code(said, 160));
  for (const verdict::Check& check : v.verdict.checks) {
    if (is_good(check.verdict)) continue;
    out += fmt::format("- {} {}", verdict_label(check.verdict), text.code(check.what, 120));
    if (!check.expected.empty()) out += ": expected " + text.code(check.expected, 200);
    if (!check.seen.empty()) out += ", seen " + text.code(check.seen, 200);
    if (!check.note.empty() && (!run || check.note != run->reason))
      out += " · " + text.code(check.note, 400);
    out += "\n";
  }
  if (!run) return out + "- " + text.code(v.verdict.reason) + "\n";
  for (const contract::Result& result : run->contracts) {
    if (tells_more(result, *run)) out += group_lines(text, result, *run);
  }
  if (run->outcome != verdict::Outcome::kPassed && !run->reason.empty())
    out += "- " + text.code(run->reason) + "\n";
  std::vector<std::string> lines;
  for (const verdict::Output& output : run->outputs) {
    for (const std::string& line : output.matched) {
      if (lines.size() < kMostDetailLines)
        lines.push_back(fmt::format("rank {} {}: {}", output.rank, output.stream, line));
    }
  }
  if (!lines.empty()) out += "\n" + text.block("text", lines, 300);
  if (!run->reproduce.empty()) out += "\n" + text.block("sh", {run->reproduce});
  return out;
}

void add_markdown_details(MarkdownDocument& document, const MarkdownText& text,
                          const Report& report) {
  add_selection(document, text, report);
  for (const ScenarioReport& s : report.scenarios) add_figures(document, text, s);
  add_comparisons(document, text, report);
  add_lists(document, text, report);
  add_model(document, text, report);
}

}  // namespace warmgate::reports
