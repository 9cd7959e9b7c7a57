#include "harness/cli/to_report.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

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

reports::VariantReport variant_report(const run::VariantResult& from) {
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
  return out;
}

}  // namespace

std::vector<std::string> secret_values() {
  constexpr std::array kWords = {"TOKEN",  "SECRET",     "PASSWORD",    "PASSWD",    "API_KEY",
                                 "APIKEY", "CREDENTIAL", "PRIVATE_KEY", "ACCESS_KEY"};
  std::vector<std::string> out;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    std::string name(text.substr(0, equals));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const bool secret = std::any_of(kWords.begin(), kWords.end(), [&](const char* word) {
      return name.find(word) != std::string::npos;
    });
    if (secret && text.size() - equals > 8) out.emplace_back(text.substr(equals + 1));
  }
  return out;
}

reports::Report to_report(const run::GateResult& result, const CommandLine& line, int exit_code) {
  reports::Report out;
  out.command = result.command;
  out.verb = line.command;
  out.version = WARMGATE_VERSION;
  out.verdict = result.verdict;
  out.exit_code = exit_code;
  out.machine = result.machine;
  out.not_observed = result.not_observed;
  out.wall_s = result.wall_s;
  out.interrupted = result.interrupted;
  out.soft = line.soft;
  out.secrets = secret_values();
  for (const run::ScenarioResult& from : result.scenarios) {
    reports::ScenarioReport s;
    s.name = from.scenario.name;
    s.path = from.scenario.path.string();
    s.about = from.scenario.about;
    s.source = from.scenario.source;
    s.tags = from.scenario.tags;
    s.checks = from.checks;
    s.comparisons = from.comparisons;
    s.verdict = from.verdict;
    s.reason = from.reason;
    for (const run::VariantResult& v : from.variants) s.variants.push_back(variant_report(v));
    out.scenarios.push_back(std::move(s));
  }
  return out;
}

}  // namespace warmgate::cli
