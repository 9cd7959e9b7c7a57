#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/cli/commands.h"
#include "harness/cli/result_output.h"
#include "harness/cli/select.h"
#include "harness/run/secrets.h"
#include "reports/printer.h"

namespace warmgate::cli {
namespace {

// Leaves of a document as `a.b[0].c` → JSON text; short lists of plain values stay whole.
void flatten(const nlohmann::json& value, const std::string& path,
             std::vector<std::pair<std::string, std::string>>& out) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, item] : value.items())
      flatten(item, path.empty() ? key : path + "." + key, out);
    return;
  }
  const bool nested =
      value.is_array() &&
      std::any_of(value.begin(), value.end(), [](const auto& i) { return i.is_structured(); });
  if (nested) {
    for (std::size_t i = 0; i < value.size(); ++i)
      flatten(value[i], fmt::format("{}[{}]", path, i), out);
    return;
  }
  out.emplace_back(path, value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// The origin of a key: its own, or that of the nearest key above it.
std::string origin_of(const std::map<std::string, std::string>& origins, std::string path) {
  while (!path.empty()) {
    const auto it = origins.find(path);
    if (it != origins.end()) return it->second;
    const std::size_t cut = path.find_last_of(".[");
    path.resize(cut == std::string::npos ? 0 : cut);
  }
  return "default";
}

void print_values(reports::Printer& out, const nlohmann::json& document, const nlohmann::json* base,
                  const scenario::Variant& variant) {
  std::vector<std::pair<std::string, std::string>> values, before;
  flatten(document, "", values);
  if (base) flatten(*base, "", before);
  for (const auto& [path, value] : values) {
    if (path == "schema") continue;
    if (base &&
        std::find(before.begin(), before.end(), std::make_pair(path, value)) != before.end())
      continue;
    const std::string left = out.clean(path + ": " + value);
    const std::size_t used = reports::columns(left);
    const std::string gap(used < 58 ? 58 - used : 2, ' ');
    out.row(2,
            left + gap + out.cell("# " + origin_of(variant.origins, path), reports::Tone::kQuiet));
  }
}

nlohmann::ordered_json bounds(const scenario::Expectation& expect) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  if (expect.outcome) out["outcome"] = *expect.outcome;
  if (expect.phase) out["phase"] = *expect.phase;
  if (!expect.contracts.empty()) out["contracts"] = expect.contracts;
  for (const auto& [name, bound] : expect.figures) out["figures"][name] = bound.text;
  return out;
}

std::string resolve_text(const scenario::Scenario& scenario,
                         const std::vector<const scenario::Variant*>& variants,
                         const reports::Style& style) {
  reports::Printer out(style, {});
  out.row(0, out.cell(scenario.name, reports::Tone::kStrong) + "  " +
                 out.cell(scenario.path.string(), reports::Tone::kQuiet));
  for (const scenario::Variant* v : variants) {
    out.blank();
    out.row(0, out.cell("variant " + v->name, reports::Tone::kStrong));
    out.row(2, out.cell("identity: " + v->identity));
    std::string behaviours;
    for (const std::string& b : v->behaviours) behaviours += (behaviours.empty() ? "" : ", ") + b;
    out.row(2, out.cell("behaviours: " + (behaviours.empty() ? "none" : behaviours)));
    const nlohmann::ordered_json expect = bounds(v->expect);
    if (!expect.empty()) out.row(2, out.cell("expect: " + expect.dump()));
    if (v->target.kind == scenario::Target::Kind::kCommand) {
      out.row(2, out.cell("command: " + nlohmann::json(v->target.argv).dump()));
      continue;
    }
    if (v->target.kind == scenario::Target::Kind::kNative) {
      const auto resolved = scenario::resolve_json(*v);
      for (const auto& [key, value] : resolved.at("target").items()) {
        if (key == "kind" || key == "phases" || value.empty()) continue;
        out.row(2, out.cell("target." + key + ": " + value.dump()));
      }
    }
    if (v->target.server) {
      // By name: what a range-for walks over must outlive it.
      const auto resolved = scenario::resolve_json(*v);
      if (resolved.contains("artefact"))
        out.row(2, out.cell("artefact: " + resolved.at("artefact").dump()));
      for (const auto& [key, value] : resolved.at("target").at("server").items()) {
        const auto origin = v->origins.find("target.server." + key);
        out.row(2, out.cell(key + ": " + value.dump()) +
                       (origin == v->origins.end()
                            ? ""
                            : "  " + out.cell(origin->second, reports::Tone::kQuiet)));
      }
      continue;
    }
    if (v->ranks.empty()) continue;
    const nlohmann::json first = scenario::to_json(v->ranks.front());
    print_values(out, first, nullptr, *v);
    for (std::size_t rank = 1; rank < v->ranks.size(); ++rank) {
      const nlohmann::json other = scenario::to_json(v->ranks[rank]);
      if (other == first) continue;
      out.row(0, out.cell(fmt::format("variant {}, rank {}, where it differs", v->name, rank),
                          reports::Tone::kStrong));
      print_values(out, other, &first, *v);
    }
  }
  return out.take();
}

}  // namespace

int resolve_command(const CommandLine& line, Console& console) {
  const scenario::Scenario scenario = scenario::load_scenario(line.paths.front(), line.run.load);
  console.know(run::known_secrets({&scenario}, line.run.load));
  const auto variants = select_variants(scenario, line.run.variants);
  nlohmann::ordered_json json;
  json["schema"] = "resolve/1.0";
  json["scenario"] = scenario.name;
  json["path"] = scenario.path.string();
  json["variants"] = nlohmann::ordered_json::array();
  for (const scenario::Variant* v : variants) {
    nlohmann::ordered_json item;
    item["name"] = v->name;
    item["base_name"] = v->base_name;
    item["identity"] = v->identity;
    item["behaviours"] = v->behaviours;
    item["expect"] = bounds(v->expect);
    item["command"] = v->target.argv;
    if (v->target.server) item["server"] = scenario::resolve_json(*v)["target"]["server"];
    item["ranks"] = nlohmann::ordered_json::array();
    for (const scenario::Resolved& rank : v->ranks)
      item["ranks"].push_back(nlohmann::ordered_json(scenario::to_json(rank)));
    item["origins"] = v->origins;
    json["variants"].push_back(std::move(item));
  }
  return deliver_result(json, resolve_text(scenario, variants, console.out_style()), 0, line,
                        console);
}

}  // namespace warmgate::cli
