#include "harness/cli/to_report.h"

#include "harness/run/kept.h"
#include "harness/target/mask.h"

extern char** environ;

namespace warmgate::cli {
namespace {

std::string expected_text(const scenario::Expectation& expect) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (expect.outcome) add(*expect.outcome);
  if (expect.phase) add("in " + *expect.phase);
  for (const std::string& contract : expect.contracts) add("breaking " + contract);
  for (const auto& [name, bound] : expect.figures) add(name + " " + bound.text);
  return out;
}

scenario::Position position(const scenario::Scenario& scenario, const std::string& key) {
  const auto it = scenario.positions.find(key);
  return it == scenario.positions.end() ? scenario::Position{} : it->second;
}

// What its workload asks for; nothing where the program decides for itself.
std::optional<std::int64_t> requests_of(const scenario::Variant& variant) {
  std::int64_t sum = 0;
  if (variant.target.server) {
    for (const auto& group : variant.target.server->workload) sum += group.requests;
    return sum > 0 ? std::optional(sum) : std::nullopt;
  }
  if (variant.target.kind != scenario::Target::Kind::kNative || variant.ranks.empty())
    return std::nullopt;
  for (const auto& group : variant.ranks.front().workload.groups) sum += group.count;
  return sum;
}

reports::VariantReport variant_report(const run::VariantResult& from,
                                      const scenario::Scenario& scenario) {
  reports::VariantReport out;
  out.name = from.variant.name;
  out.base_name = from.variant.base_name;
  out.behaviours = from.variant.behaviours;
  out.identity = from.variant.identity;
  out.modelled = from.variant.target.kind == scenario::Target::Kind::kNative;
  if (out.modelled && !from.variant.ranks.empty()) out.device = from.variant.ranks.front().device;
  out.expected = expected_text(from.variant.expect);
  for (const verdict::RunRecord& run : from.runs) out.runs.push_back(&run);
  out.verdict = from.verdict;
  out.artefact = from.artefact;
  out.requests = requests_of(from.variant);
  out.position = position(scenario, "variants." + out.base_name);
  return out;
}

}  // namespace

std::vector<std::string> secret_values() { return target::collect_secrets(environ); }

reports::Report to_report(const run::GateResult& result, const CommandLine& line, int exit_code) {
  reports::Report out;
  out.command = result.command;
  out.verb = line.command;
  std::vector<std::filesystem::path> files;
  for (const run::ScenarioResult& each : result.scenarios) files.push_back(each.scenario.path);
  out.call = run::call_json(line.command, files, line.sides, line.run);
  out.version = WARMGATE_VERSION;
  out.verdict = result.verdict;
  out.exit_code = exit_code;
  out.machine = result.machine;
  out.not_observed = result.not_observed;
  out.wall_s = result.wall_s;
  out.interrupted = result.interrupted;
  out.soft = line.soft;
  out.output_errors = result.output_errors;
  out.secrets = result.secrets;
  for (const run::ScenarioResult& from : result.scenarios) {
    reports::ScenarioReport s;
    s.name = from.scenario.name;
    s.path = from.scenario.path.string();
    s.selection = from.selection;
    s.position = position(from.scenario, "scenario");
    s.about = from.scenario.about;
    s.source = from.scenario.source;
    s.tags = from.scenario.tags;
    s.checks = from.checks;
    s.comparisons = from.comparisons;
    s.verdict = from.verdict;
    s.reason = from.reason;
    for (const run::VariantResult& v : from.variants)
      s.variants.push_back(variant_report(v, from.scenario));
    out.scenarios.push_back(std::move(s));
  }
  return out;
}

}  // namespace warmgate::cli
