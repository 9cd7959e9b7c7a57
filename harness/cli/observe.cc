#include "harness/cli/observe.h"

#include <stdexcept>

#include "harness/cli/session.h"

namespace warmgate::cli {

run::ScenarioResult observe(const CommandLine& line, Console& console, bool& interrupted) {
  run::Options options = line.run;
  options.repeat = 1;
  options.expect = false;
  std::vector<scenario::Scenario> scenarios;
  scenarios.push_back(scenario::load_scenario(line.paths.front(), run::load_options(options)));
  // Shapes, sizes and keys are those of the chosen device's overlay; nothing need be computed, nor
  // the device be here.
  for (scenario::Variant& variant : scenarios.front().variants) {
    if (variant.target.kind != scenario::Target::Kind::kNative) continue;
    for (scenario::Resolved& rank : variant.ranks) rank.device = "meta";
  }
  run::GateResult result;
  watched(line, console, [&](target::CancelToken& cancel, const run::Progress& progress) {
    result = run::run_loaded(std::move(scenarios), options, cancel, progress);
  });
  interrupted = result.interrupted;
  if (interrupted) return {};
  run::ScenarioResult out = std::move(result.scenarios.at(0));
  for (const run::VariantResult& v : out.variants) {
    for (const verdict::RunRecord& run : v.runs) {
      if (run.outcome == verdict::Outcome::kInfra)
        throw std::runtime_error("variant " + v.variant.name + ": " + run.reason);
    }
  }
  return out;
}

}  // namespace warmgate::cli
