// Two variants side by side: outcome, findings, counts and sets, figures; what decided.
#pragma once

#include <string>

#include "reports/printer.h"
#include "reports/report.h"
#include "reports/terminal.h"

namespace warmgate::reports {

/// `report` holds one scenario whose first two variants are A and B, whose checks are those of the
/// comparison and whose verdict is that of B against A. Equal figures are left out unless kVerbose.
std::string ab_report(const Report& report, const Style& style, Detail detail = Detail::kNormal);

}  // namespace warmgate::reports
