// What is wrong with scenario files, as a compiler would say it.
#pragma once

#include <string>

#include "harness/scenario/scenario.h"
#include "reports/printer.h"

namespace warmgate::cli {

/// Each problem as `file:line:column: key.path: message`, then the line with a caret under the
/// column.
std::string problems_text(const scenario::ScenarioError& error, const reports::Style& style);

/// Values in the lines that the problems point at whose names say that they are secrets: a message
/// may quote them.
std::vector<std::string> secrets_near(const scenario::ScenarioError& error);

}  // namespace warmgate::cli
