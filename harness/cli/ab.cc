#include <stdexcept>

#include "harness/cli/commands.h"

namespace warmgate::cli {

int ab_command(const CommandLine&, Console&) { throw std::runtime_error("ab: not in this build"); }

}  // namespace warmgate::cli
