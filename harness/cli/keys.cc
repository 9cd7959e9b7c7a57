#include <fmt/format.h>

#include <algorithm>

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
  std::string out = fmt::format("{} {} warmed", k.kernel, k.warmed());
  if (k.asked() != k.warmed()) out += fmt::format(" of {} asked for", k.asked());
  out += fmt::format(", {} invalid", k.invalid());
  out += k.domain_known ? fmt::format(", {} reachable", k.reachable()) : ", reachable not observed";
  out += fmt::format(", {} launched", k.launched());
  if (k.launched_not_warmed() > 0)
    out += fmt::format(" ({} of them not warmed)", k.launched_not_warmed());
  if (k.never_compiled() > 0) out += fmt::format("; {} never compiled", k.never_compiled());
  if (k.asked_not_reachable() > 0)
    out += fmt::format("; {} asked for in vain: not reachable", k.asked_not_reachable());
  return out;
}

std::vector<std::string> fields_of(const KeyRow& row) {
  std::vector<std::string> out;
  const std::size_t brace = row.key.find('{');
  if (brace == std::string::npos || row.key.back() != '}') return {row.key};
  std::string_view rest = std::string_view(row.key).substr(brace + 1, row.key.size() - brace - 2);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    out.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return out;
}

// The fields that all keys of a kernel share; none if there is only one key.
std::vector<std::string> shared_fields(const std::vector<const KeyRow*>& rows) {
  std::vector<std::string> out;
  if (rows.size() < 2) return out;
  for (const std::string& field : fields_of(*rows.front())) {
    if (std::all_of(rows.begin(), rows.end(), [&](const KeyRow* r) {
          const auto fields = fields_of(*r);
          return std::find(fields.begin(), fields.end(), field) != fields.end();
        }))
      out.push_back(field);
  }
  return out;
}

std::string without(const KeyRow& row, const std::vector<std::string>& shared) {
  std::string out;
  for (const std::string& field : fields_of(row)) {
    if (std::find(shared.begin(), shared.end(), field) == shared.end())
      out += (out.empty() ? "" : ",") + field;
  }
  return out;
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

std::string key_row(const Printer& out, const KernelKeys& k, const KeyRow& r,
                    const std::vector<std::string>& archs, const std::string& words) {
  const std::string warmed = r.warmed ? "yes" : r.compiled ? "failed" : r.asked ? "asked" : "no";
  std::string line = out.cell(warmed, r.launched && !r.warmed ? Tone::kBad : Tone::kPlain, 8);
  const bool wasted = r.asked && k.domain_known && !r.reachable;
  line += !k.domain_known
              ? out.cell("-", Tone::kQuiet, 11)
              : out.cell(r.reachable ? "yes" : "no", wasted ? Tone::kDoubt : Tone::kPlain, 11);
  line += out.cell(r.launched ? "yes" : "no", Tone::kPlain, 10) + state_cell(out, r.host, 8);
  for (const std::string& arch : archs) {
    const auto it = r.archs.find(arch);
    line += state_cell(out, it == r.archs.end() ? KeyState::kNone : it->second,
                       std::max<std::size_t>(8, arch.size() + 2));
  }
  return line + out.cell(words, r.invalid() ? Tone::kBad : Tone::kPlain);
}

void print_kernel(Printer& out, const KernelKeys& k, const std::vector<std::string>& archs,
                  bool all) {
  std::vector<const KeyRow*> rows;
  std::vector<std::string> reasons;
  for (const KeyRow& r : k.rows) {
    if (!all && !r.asked && !r.launched) continue;
    rows.push_back(&r);
    if (!r.why.empty() && std::find(reasons.begin(), reasons.end(), r.why) == reasons.end())
      reasons.push_back(r.why);
  }
  const std::vector<std::string> shared = shared_fields(rows);
  out.paragraph(2,
                shared.empty()
                    ? k.kernel
                    : k.kernel + ", all with " + fmt::format("{}", fmt::join(shared, ",")),
                Tone::kStrong);
  std::string head = out.cell("warmed", Tone::kQuiet, 8) + out.cell("reachable", Tone::kQuiet, 11) +
                     out.cell("launched", Tone::kQuiet, 10) + out.cell("host", Tone::kQuiet, 8);
  for (const std::string& arch : archs)
    head += out.cell(arch, Tone::kQuiet, std::max<std::size_t>(8, arch.size() + 2));
  out.row(2, head + out.cell("key", Tone::kQuiet));
  for (const KeyRow* r : rows) out.row(2, key_row(out, k, *r, archs, without(*r, shared)));
  for (std::size_t i = 0; i < reasons.size() && (all || i < 2); ++i)
    out.paragraph(4, reasons[i], Tone::kQuiet);
  if (rows.size() < k.rows.size())
    out.row(
        2, out.cell(fmt::format("and {} more, neither asked for nor launched; --verbose lists them",
                                k.rows.size() - rows.size()),
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
