// The report for programs: `schema: report/1.1`, described by report.schema.json beside this file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/report.h"

namespace warmgate::reports {

inline constexpr const char* kReportSchema = "report/1.1";

/// Everything the runs left; of the trace the events that prove a finding, once per run under
/// `events`, to which `proof` refers by index. Strings are valid UTF-8 and masked; figures that are
/// not finite become null.
nlohmann::ordered_json json_report(const Report& report);

/// The same as text, two blanks of indentation, newline at the end.
std::string json_text(const Report& report);

}  // namespace warmgate::reports
