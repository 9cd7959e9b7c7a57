#include "harness/cli/observe.h"

#include <stdexcept>

#include "harness/cli/session.h"

namespace warmgate::cli {

run::ScenarioResult observe(const CommandLine& line, Console& console, bool& interrupted) {
  check_outputs(line);
  run::Options options = line.run;
  options.repeat = 1;
  options.expect = false;
  run::GateResult result = execute({line.paths.front()}, options, line, console);
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
