#include <stdexcept>

#include "harness/cli/commands.h"

namespace warmgate::cli {

int accept_command(const CommandLine&, Console&) {
  throw std::runtime_error("accept: not in this build");
}

}  // namespace warmgate::cli
