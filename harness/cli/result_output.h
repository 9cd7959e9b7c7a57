// The output of commands that judge nothing: text for a person or JSON for a program.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/cli/command_line.h"
#include "harness/cli/console.h"

namespace warmgate::cli {

/// With --json - JSON alone on stdout; with --json FILE text on stdout and JSON in the file; else
/// text. What the console knows for a secret is masked. Returns `code`, or 4 if writing failed.
int deliver_result(nlohmann::ordered_json json, const std::string& text, int code,
                   const CommandLine& line, Console& console);

}  // namespace warmgate::cli
