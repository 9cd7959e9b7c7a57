#include <fmt/format.h>

#include "harness/cli/commands.h"
#include "harness/cli/observe.h"
#include "harness/cli/result_output.h"
#include "harness/plan/key_table.h"
#include "reports/printer.h"

namespace warmgate::cli {
namespace {

using plan::KernelKeys;
using plan::KeyRow;
using plan::KeyState;
using plan::KeyTable;
using reports::Printer;
using reports::Tone;

std::string counts_text(const KernelKeys& k) {
  std::string out = fmt::format("{} {} warmed, {} invalid", k.kernel, k.warmed(), k.invalid());
  out += k.domain_known ? fmt::format(", {} reachable", k.reachable()) : ", reachable not observed";
  out += fmt::format(", {} launched", k.launched());
  if (k.launched_not_warmed() > 0)
    out += fmt::format(" ({} of them never warmed)", k.launched_not_warmed());
  if (k.warmed_not_reachable() > 0)
    out += fmt::format("; {} warmed for nothing", k.warmed_not_reachable());
  return out;
}

// The fields alone: the kernel's name stands above.
std::string fields_of(const KeyRow& row) {
  const std::size_t brace = row.key.find('{');
  return brace == std::string::npos ? row.key : row.key.substr(brace);
}

std::string state_cell(const Printer& out, KeyState state, std::size_t pad) {
  switch (state) {
    case KeyState::kOk:
      return out.cell("ok", Tone::kPlain, pad);
    case KeyState::kBroken:
      return out.cell("BROKEN", Tone::kBad, pad);
    case KeyState::kNone:
      break;
  }
  return out.cell("-", Tone::kQuiet, pad);
}

void print_kernel(Printer& out, const KernelKeys& k, const std::vector<std::string>& archs,
                  bool all) {
  std::string head = out.cell("warmed", Tone::kQuiet, 8) + out.cell("reachable", Tone::kQuiet, 11) +
                     out.cell("launched", Tone::kQuiet, 10) + out.cell("host", Tone::kQuiet, 8);
  for (const std::string& arch : archs)
    head += out.cell(arch, Tone::kQuiet, std::max<std::size_t>(8, arch.size() + 2));
  out.row(2, head + out.cell("key", Tone::kQuiet));
  std::size_t left_out = 0;
  std::vector<std::string> reasons;
  for (const KeyRow& r : k.rows) {
    if (!all && !r.warmed && !r.launched && !r.invalid()) {
      ++left_out;
      continue;
    }
    const bool wasted = r.warmed && k.domain_known && !r.reachable;
    std::string line =
        out.cell(r.warmed ? "yes" : "no", r.launched && !r.warmed ? Tone::kBad : Tone::kPlain, 8);
    line += !k.domain_known
                ? out.cell("-", Tone::kQuiet, 11)
                : out.cell(r.reachable ? "yes" : "no", wasted ? Tone::kDoubt : Tone::kPlain, 11);
    line += out.cell(r.launched ? "yes" : "no", Tone::kPlain, 10) + state_cell(out, r.host, 8);
    for (const std::string& arch : archs) {
      const auto it = r.archs.find(arch);
      line += state_cell(out, it == r.archs.end() ? KeyState::kNone : it->second,
                         std::max<std::size_t>(8, arch.size() + 2));
    }
    out.row(2, line + out.cell(fields_of(r), r.invalid() ? Tone::kBad : Tone::kPlain));
    if (!r.why.empty() && std::find(reasons.begin(), reasons.end(), r.why) == reasons.end())
      reasons.push_back(r.why);
  }
  for (std::size_t i = 0; i < reasons.size() && (all || i < 2); ++i)
    out.paragraph(4, reasons[i], Tone::kQuiet);
  if (left_out > 0)
    out.row(2, out.cell(fmt::format("and {} reachable keys, neither warmed nor launched; --verbose "
                                    "lists them",
                                    left_out),
                        Tone::kQuiet));
}

std::string keys_text(const run::ScenarioResult& result,
                      const std::vector<std::pair<std::string, KeyTable>>& tables,
                      const CommandLine& line, const reports::Style& style) {
  Printer out(style, {});
  const bool all = line.detail == reports::Detail::kVerbose;
  out.row(0, out.cell(result.scenario.name, Tone::kStrong) + "  " +
                 out.cell(result.scenario.path.string(), Tone::kQuiet));
  for (const auto& [name, table] : tables) {
    out.blank();
    out.row(0, out.cell("variant " + name, Tone::kStrong));
    for (const KernelKeys& k : table.kernels)
      out.paragraph(2, counts_text(k), k.invalid() > 0 ? Tone::kBad : Tone::kPlain);
    if (table.kernels.empty()) out.row(2, out.cell("no compile key was seen", Tone::kQuiet));
    for (const std::string& missing : table.not_observed)
      out.paragraph(2, "not observed: " + missing, Tone::kQuiet);
    for (const KernelKeys& k : table.kernels) {
      out.blank();
      out.row(2, out.cell(k.kernel, Tone::kStrong));
      print_kernel(out, k, table.archs, all);
    }
  }
  return out.take();
}

}  // namespace

int keys_command(const CommandLine& line, Console& console) {
  bool interrupted = false;
  const run::ScenarioResult result = observe(line, console, interrupted);
  if (interrupted) return 130;
  std::vector<std::pair<std::string, KeyTable>> tables;
  nlohmann::ordered_json json;
  json["schema"] = plan::kKeysSchema;
  json["scenario"] = result.scenario.name;
  json["path"] = result.scenario.path.string();
  json["variants"] = nlohmann::ordered_json::array();
  for (const run::VariantResult& v : result.variants) {
    if (v.runs.empty()) continue;
    const auto archs = v.variant.ranks.empty() ? std::vector<std::string>{}
                                               : v.variant.ranks.front().architectures;
    tables.emplace_back(v.variant.name, plan::key_table(v.runs.front().trace, archs));
    nlohmann::ordered_json item;
    item["variant"] = v.variant.name;
    item["outcome"] = verdict::to_string(v.runs.front().outcome);
    item.update(to_json(tables.back().second));
    json["variants"].push_back(std::move(item));
  }
  return deliver_result(json, keys_text(result, tables, line, console.out_style()), 0, line,
                        console);
}

}  // namespace warmgate::cli
