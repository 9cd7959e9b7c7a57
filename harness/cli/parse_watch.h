// The options of `warmgate watch`. Beside parse.cc, because each command is long enough.
#pragma once

#include <string>

#include "harness/cli/command_line.h"

namespace CLI {
class App;
}

namespace warmgate::cli {

/// What parse.cc turns into a CommandLine itself.
struct WatchRaw {
  std::string& timeout;
  bool& quiet;
};

void add_watch(CLI::App& app, CommandLine& line, WatchRaw raw);

}  // namespace warmgate::cli
