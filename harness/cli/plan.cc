#include "harness/plan/plan.h"

#include <fmt/format.h>

#include "harness/cli/commands.h"
#include "harness/cli/observe.h"
#include "harness/cli/result_output.h"
#include "reports/printer.h"

namespace warmgate::cli {
namespace {

using reports::Printer;
using reports::Tone;

std::string mib(std::int64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

std::string right(std::string_view text, std::size_t width) {
  return fmt::format("{:>{}}", text, width);
}

// The pools whose holdings differ from those at the end of the phase before.
std::string changes(const plan::PhaseMemory* before, const plan::PhaseMemory& now) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  for (const auto& [name, use] : now.pools) {
    const auto it = before ? before->pools.find(name) : now.pools.end();
    const std::int64_t held = before && it != before->pools.end() ? it->second.live : 0;
    if (use.live != held) add(use.live == 0 ? name + " gone" : name + " " + mib(use.live));
  }
  for (const auto& [name, use] : before ? before->pools : decltype(now.pools){}) {
    if (use.live != 0 && now.pools.count(name) == 0) add(name + " gone");
  }
  return out;
}

void print_phases(Printer& out, const plan::Plan& plan) {
  if (plan.phases.empty()) return;
  out.row(2, out.cell("memory, MiB", Tone::kStrong, 14) +
                 out.cell("       peak  persistent   transient  pools that changed", Tone::kQuiet));
  const plan::PhaseMemory* before = nullptr;
  for (const plan::PhaseMemory& p : plan.phases) {
    const bool ok = p.status == "ok";
    const std::string lead = out.cell(p.phase, ok ? Tone::kPlain : Tone::kBad, 14) +
                             out.cell(right(mib(p.peak_bytes), 11)) +
                             out.cell(right(mib(p.persistent_bytes), 12)) +
                             out.cell(right(mib(p.transient_peak_bytes), 12)) + "  ";
    out.paragraph(2, ok ? changes(before, p) : p.status + "; " + changes(before, p), Tone::kQuiet,
                  lead, 51);
    before = &p;
  }
  if (!plan.other_ranks.empty())
    out.row(4, out.cell(fmt::format("rank 0; other amounts on rank {}",
                                    fmt::join(plan.other_ranks, ", ")),
                        Tone::kQuiet));
}

void print_capacity(Printer& out, const plan::Plan& plan) {
  if (!plan.capacity) return;
  const plan::Capacity& c = *plan.capacity;
  out.row(2, out.cell("cache groups", Tone::kStrong, 14) +
                 out.cell("layers   block bytes  block tokens  blocks a request", Tone::kQuiet));
  for (const plan::CacheGroup& g : c.groups) {
    out.row(2, out.cell(g.name, Tone::kPlain, 14) + right(std::to_string(g.layers), 6) +
                   right(reports::grouped(g.bytes), 14) +
                   right(reports::grouped(g.block_tokens), 14) +
                   right(reports::grouped(g.blocks_per_request), 18));
  }
  const auto value = [&](const char* name, const std::string& text) {
    out.row(2, out.cell(name, Tone::kPlain, 22) + out.cell(text));
  };
  out.row(2, out.cell("capacity", Tone::kStrong));
  value("block stride", reports::grouped(c.block_stride) + " B");
  value("blocks", reports::grouped(c.blocks));
  value("KV bytes", reports::figure_text("kv_bytes", static_cast<double>(c.bytes)));
  value("blocks a request", reports::grouped(c.blocks_per_request));
  value("tokens", reports::grouped(c.tokens));
  value("concurrency", fmt::format("{:.2f}x", c.concurrency));
}

void print_workspace(Printer& out, const plan::Plan& plan) {
  if (plan.workspace.empty()) return;
  out.row(2, out.cell("workspace, MiB", Tone::kStrong, 26) +
                 out.cell("  reserved      needed", Tone::kQuiet));
  std::int64_t largest = 0;
  for (const plan::WorkspaceRow& w : plan.workspace) largest = std::max(largest, w.reserved);
  for (const plan::WorkspaceRow& w : plan.workspace) {
    std::string line = out.cell(w.layer_kind, Tone::kPlain, 14) +
                       out.cell(w.consumer, Tone::kPlain, 12) + right(mib(w.reserved), 10) +
                       right(mib(w.needed), 12);
    if (w.shortfall() > 0) {
      line += "  " + out.cell(fmt::format("short by {}", mib(w.shortfall())), Tone::kBad);
      if (largest >= w.needed)
        line += out.cell(fmt::format(", hidden by another's {}", mib(largest)), Tone::kQuiet);
    }
    out.row(2, line);
  }
}

std::string plan_text(const run::ScenarioResult& result, const std::vector<plan::Plan>& plans,
                      const reports::Style& style) {
  Printer out(style, {});
  out.row(0, out.cell(result.scenario.name, Tone::kStrong) + "  " +
                 out.cell(result.scenario.path.string(), Tone::kQuiet));
  for (const plan::Plan& plan : plans) {
    out.blank();
    out.row(0, out.cell(fmt::format("variant{} {}", plan.variants.size() > 1 ? "s" : "",
                                    fmt::join(plan.variants, ", ")),
                        Tone::kStrong));
    if (!plan.stopped.empty()) out.paragraph(2, plan.stopped, Tone::kBad);
    print_phases(out, plan);
    print_capacity(out, plan);
    print_workspace(out, plan);
    for (const std::string& missing : plan.not_observed)
      out.paragraph(2, "not observed: " + missing, Tone::kQuiet);
  }
  return out.take();
}

}  // namespace

int plan_command(const CommandLine& line, Console& console) {
  bool interrupted = false;
  const run::ScenarioResult result = observe(line, console, interrupted);
  if (interrupted) return 130;
  const std::vector<plan::Plan> plans = plan::plans_of(result);
  nlohmann::ordered_json json;
  json["schema"] = plan::kPlanSchema;
  json["scenario"] = result.scenario.name;
  json["path"] = result.scenario.path.string();
  json["plans"] = nlohmann::ordered_json::array();
  for (const plan::Plan& plan : plans) json["plans"].push_back(to_json(plan));
  return deliver_result(json, plan_text(result, plans, console.out_style()), 0, line, console);
}

}  // namespace warmgate::cli
