// The lines of a log around a fault.
#pragma once

#include <optional>

#include "reports/evidence.h"

namespace warmgate::reports {

/// Around the line that holds the fault's message, else around the last line that looks like a
/// cause, else the end of the output, of the worker that failed first; nothing if it printed
/// nothing. `fault` is null where nobody reported one.
std::optional<LogExcerpt> log_excerpt(const verdict::RunRecord& run, const trace::Event* fault);

}  // namespace warmgate::reports
