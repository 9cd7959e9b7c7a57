#include <stdexcept>
#include <string_view>
#include <utility>

#include "harness/cli/commands.h"
#include "harness/cli/inputs.h"
#include "harness/cli/outputs.h"

namespace warmgate::cli {

int dispatch(const CommandLine& line, Console& console) {
  using Command = int (*)(const CommandLine&, Console&);
  constexpr std::pair<std::string_view, Command> kCommands[] = {
      {"run", run_command},       {"ab", ab_command},           {"gate", gate_command},
      {"step", step_command},     {"resolve", resolve_command}, {"plan", plan_command},
      {"keys", keys_command},     {"accept", accept_command},   {"shrink", shrink_command},
      {"schema", schema_command}, {"explain", explain_command}, {"doctor", doctor_command},
      {"watch", watch_command},   {"bundle", bundle_command},   {"probes", probes_command},
  };
  for (const auto& [name, command] : kCommands) {
    if (line.command != name) continue;
    check_inputs(line);
    check_outputs(line);
    return command(line, console);
  }
  throw std::logic_error("no such command: " + line.command);
}

}  // namespace warmgate::cli
