#include "reports/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "harness/trace/vocabulary.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

constexpr std::array<std::string_view, 13> kAskedFirst = {
    "time_to_ready_s",    "kv_tokens",   "concurrency",     "kv_blocks",
    "blocks_per_request", "kv_bytes",    "workspace_bytes", "profile_peak_bytes",
    "serve_peak_bytes",   "keys_warmed", "keys_invalid",    "compiles_after_ready",
    "requests_ok"};

std::string join(const std::vector<std::string>& items, std::string_view by = ",") {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : std::string(by)) + item;
  return out;
}

// Figures in the vocabulary's order, then the unknown ones by name.
std::vector<std::string> figures_of(const ScenarioReport& scenario, Detail detail) {
  std::set<std::string> present, decided;
  for (const VariantReport& v : scenario.variants) {
    for (const verdict::RunRecord* run : v.runs) {
      for (const auto& [name, value] : run->figures) present.insert(name);
    }
    for (const verdict::Check& check : v.verdict.checks) {
      for (const std::string& name : present) {
        if (check.what.find(name) != std::string::npos) decided.insert(name);
      }
    }
  }
  std::vector<std::string> out;
  for (const trace::FigureRule& rule : trace::figures()) {
    const std::string name(rule.name);
    if (present.erase(name) == 0) continue;
    const bool first =
        std::find(kAskedFirst.begin(), kAskedFirst.end(), rule.name) != kAskedFirst.end();
    if (detail == Detail::kVerbose || first || decided.count(name) > 0) out.push_back(name);
  }
  out.insert(out.end(), present.begin(), present.end());
  return out;
}

// The median over a variant's repeats, or nothing.
std::string value_text(const VariantReport& variant, const std::string& name) {
  std::vector<double> values;
  for (const verdict::RunRecord* run : variant.runs) {
    const auto it = run->figures.find(name);
    if (it != run->figures.end()) values.push_back(it->second);
  }
  if (values.empty()) return "";
  std::sort(values.begin(), values.end());
  std::string unit;
  for (const verdict::RunRecord* run : variant.runs) {
    const auto it = run->figure_info.find(name);
    if (it != run->figure_info.end()) unit = it->second.unit;
  }
  std::string text = figure_text(name, values[values.size() / 2], unit);
  if (values.front() != values.back()) text += " (median)";
  return text;
}

}  // namespace

void print_figures(Printer& out, const ScenarioReport& scenario, Detail detail) {
  if (detail == Detail::kQuiet) return;
  const std::vector<std::string> names = figures_of(scenario, detail);
  if (names.empty()) return;
  // As many variants a table as fit beside each other.
  const std::size_t label = 24;
  std::size_t from = 0;
  while (from < scenario.variants.size()) {
    std::vector<std::size_t> width;
    std::size_t to = from, used = 2 + label;
    for (; to < scenario.variants.size(); ++to) {
      const VariantReport& v = scenario.variants[to];
      std::size_t w = columns(out.clean(v.name));
      for (const std::string& name : names)
        w = std::max(w, columns(out.clean(value_text(v, name))));
      if (to > from && used + w + 2 > out.style().width) break;
      width.push_back(w + 2);
      used += w + 2;
    }
    std::string head = out.cell("figures", Tone::kStrong, label);
    for (std::size_t i = from; i < to; ++i)
      head += out.cell(scenario.variants[i].name, Tone::kStrong, width[i - from]);
    out.row(2, head);
    for (const std::string& name : names) {
      std::string line = out.cell(name, Tone::kPlain, label);
      bool any = false;
      for (std::size_t i = from; i < to; ++i) {
        const std::string value = value_text(scenario.variants[i], name);
        any = any || !value.empty();
        line += out.cell(value.empty() ? "-" : value, value.empty() ? Tone::kQuiet : Tone::kPlain,
                         width[i - from]);
      }
      if (any) out.row(2, line);
    }
    from = to;
  }
}

void print_allowed(Printer& out, const ScenarioReport& scenario, Detail detail) {
  if (detail == Detail::kQuiet) return;
  struct Entry {
    std::string contract, reason, issue, where;
    std::set<std::string> keys;
    std::vector<std::string> variants;
  };
  std::vector<Entry> entries;
  for (const VariantReport& v : scenario.variants) {
    for (const verdict::RunRecord* run : v.runs) {
      for (const auto& allowed : run->allowed) {
        auto at = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) {
          return e.where == allowed.where && e.contract == allowed.finding.contract &&
                 e.reason == allowed.reason;
        });
        if (at == entries.end()) {
          entries.push_back(
              {allowed.finding.contract, allowed.reason, allowed.issue, allowed.where, {}, {}});
          at = std::prev(entries.end());
        }
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
    out.paragraph(4,
                  fmt::format("{} in {}: {}", grouped(static_cast<std::int64_t>(e.keys.size())),
                              join(e.variants), text),
                  Tone::kPlain, out.cell(e.contract) + "  ", columns(out.clean(e.contract)) + 2);
    const std::size_t most = detail == Detail::kVerbose ? 1000 : 1;
    std::size_t shown = 0;
    for (const std::string& key : e.keys) {
      if (shown++ == most) break;
      std::string line = key;
      if (e.keys.size() > most && shown == most)
        line += fmt::format(", and {} more", e.keys.size() - most);
      out.paragraph(6, line, Tone::kQuiet);
    }
    if (!e.where.empty() && detail == Detail::kVerbose) out.paragraph(6, e.where, Tone::kQuiet);
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
      for (const FindingGroup& group : group_findings(result.notes))
        notes[result.contract][proof_text(group)].push_back(v.name);
    }
  }
  if (notes.empty()) return;
  out.row(2, out.cell("notes", Tone::kStrong));
  for (const auto& [contract, texts] : notes) {
    std::size_t shown = 0;
    const std::size_t most = detail == Detail::kVerbose ? 1000 : 1;
    for (const auto& [text, variants] : texts) {
      if (shown++ == most) break;
      std::string line = fmt::format("{}: {}", join(variants), text);
      if (texts.size() > most && shown == most)
        line += fmt::format(" (and {} more)", texts.size() - most);
      out.paragraph(4, line, Tone::kPlain, out.cell(contract) + "  ",
                    columns(out.clean(contract)) + 2);
    }
  }
}

void print_not_observed(Printer& out, const ScenarioReport& scenario, Detail detail) {
  if (detail == Detail::kQuiet) return;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> rows;
  for (const VariantReport& v : scenario.variants) {
    const verdict::RunRecord* run = telling_run(v);
    if (!run) continue;
    for (const contract::Result& result : run->contracts) {
      const bool unseen = result.state == contract::State::kNotObserved;
      if (!unseen &&
          (result.state != contract::State::kNotApplicable || detail != Detail::kVerbose))
        continue;
      std::string why = result.why;
      if (!result.missing.empty()) {
        const std::string kinds = "no source sends " + join(result.missing, ", ");
        why = why.empty() ? kinds : why + "; " + kinds;
      }
      if (why.empty()) why = "the trace does not show it";
      if (!unseen) why = "not applicable: " + why;
      rows[{result.contract, why}].push_back(v.name);
    }
  }
  if (rows.empty()) return;
  out.row(2, out.cell("not observed", Tone::kStrong));
  for (const auto& [what, variants] : rows) {
    out.paragraph(4, fmt::format("{}: {}", join(variants), what.second), Tone::kPlain,
                  out.cell(what.first) + "  ", columns(out.clean(what.first)) + 2);
  }
}

void print_comparisons(Printer& out, const ScenarioReport& scenario, Detail detail) {
  if (scenario.comparisons.empty()) return;
  std::vector<const contract::Result*> shown;
  for (const contract::Result& result : scenario.comparisons) {
    const bool broken = result.state == contract::State::kBroken;
    if (broken || detail == Detail::kVerbose ||
        (detail == Detail::kNormal &&
         (!result.notes.empty() || result.state == contract::State::kKept)))
      shown.push_back(&result);
  }
  if (shown.empty()) return;
  out.row(2, out.cell("comparisons", Tone::kStrong));
  for (const contract::Result* result : shown) {
    const bool broken = result->state == contract::State::kBroken;
    const std::string lead = out.cell(result->contract, broken ? Tone::kBad : Tone::kPlain) + "  ";
    const std::size_t taken = columns(out.clean(result->contract)) + 2;
    std::string text(contract::to_string(result->state));
    if (!result->why.empty())
      text += ": " + result->why;
    else if (!result->missing.empty())
      text += ": missing " + join(result->missing, ", ");
    out.paragraph(4, text, Tone::kPlain, lead, taken);
    for (const auto* list : {&result->findings, &result->notes}) {
      std::size_t count = 0;
      const auto groups = group_findings(*list);
      const std::size_t most = detail == Detail::kVerbose ? 1000 : 3;
      for (const FindingGroup& group : groups) {
        if (count++ == most) {
          out.row(6, out.cell(fmt::format("and {} more", groups.size() - most), Tone::kQuiet));
          break;
        }
        out.paragraph(6, proof_text(group), list == &result->notes ? Tone::kQuiet : Tone::kPlain);
      }
    }
  }
}

}  // namespace warmgate::reports
