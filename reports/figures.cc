#include "reports/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "harness/trace/vocabulary.h"

namespace warmgate::reports {
namespace {

constexpr std::array<std::string_view, 14> kAskedFirst = {
    "time_to_ready_s",      "kv_tokens",  "concurrency",     "kv_blocks",
    "blocks_per_request",   "kv_bytes",   "workspace_bytes", "profile_peak_bytes",
    "serve_peak_bytes",     "keys_asked", "keys_warmed",     "keys_invalid",
    "compiles_after_ready", "requests_ok"};

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
std::string value_text(const VariantReport& variant, const std::string& name, Detail detail) {
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
  std::string text = figure_text(name, values[values.size() / 2], unit, detail == Detail::kVerbose);
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
        w = std::max(w, columns(out.clean(value_text(v, name, detail))));
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
        const std::string value = value_text(scenario.variants[i], name, detail);
        any = any || !value.empty();
        line += out.cell(value.empty() ? "-" : value, value.empty() ? Tone::kQuiet : Tone::kPlain,
                         width[i - from]);
      }
      if (any) out.row(2, line);
    }
    from = to;
  }
}

}  // namespace warmgate::reports
