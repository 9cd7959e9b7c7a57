// The command line → CommandLine. parse.cc is the only file that includes CLI11.
#pragma once

#include <optional>
#include <string>

#include "harness/cli/command_line.h"

namespace warmgate::cli {

/// Either a command to run, or what to print instead (help, version, what was wrong).
struct Parsed {
  std::optional<CommandLine> line;
  int exit_code = 0;     // without a line: 0 for help and version, else 2 (128 for `step`)
  std::string out, err;  // without a line: for stdout and stderr
};

Parsed parse(int argc, const char* const* argv);

}  // namespace warmgate::cli
