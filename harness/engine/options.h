// The command line of one worker.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/jit/jit.h"

namespace warmgate::engine {

/// What is wrong with the command line, and what would be right.
class BadUsage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string config;  // path of a resolved scenario
  int rank = 0, world = 1;
  int collectives_fd = -1;
  jit::CompilerOptions compiler;
  bool help = false, version = false, devices = false;
};

/// arguments without the program's name; `--name value` and `--name=value`. Throws BadUsage.
Options parse_options(const std::vector<std::string>& arguments);
std::string usage();

}  // namespace warmgate::engine
