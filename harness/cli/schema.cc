#include <nlohmann/json.hpp>

#include "harness/cli/commands.h"
#include "harness/scenario/scenario.h"

namespace warmgate::cli {

int schema_command(const CommandLine&, Console& console) {
  console.out(scenario::schema().dump(2) + "\n");
  if (console.out_error().empty()) return 0;
  console.complain(console.out_error());
  return 4;
}

}  // namespace warmgate::cli
