// The options of `warmgate explain`. Beside parse.cc, because each is long enough.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/command_line.h"

namespace CLI {
class App;
}

namespace warmgate::cli {

/// What parse.cc turns into a CommandLine itself.
struct ExplainRaw {
  std::vector<std::string>& soft;
  bool& quiet;
  bool& verbose;
};

void add_explain(CLI::App& app, CommandLine& line, ExplainRaw raw);

}  // namespace warmgate::cli
