// What is wrong with scenario files, as a compiler would say it.
#pragma once

#include <string>

#include "harness/scenario/scenario.h"
#include "reports/printer.h"

namespace warmgate::cli {

/// Each problem as `file:line:column: key.path: message`, then the line with a caret under the
/// column.
std::string problems_text(const scenario::ScenarioError& error, const reports::Style& style);

}  // namespace warmgate::cli
