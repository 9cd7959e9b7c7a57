// What a start of the small model shows, and what it no longer can.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/shrink/shrink.h"

namespace warmgate::plan::shrink {

/// Fills covers, cannot_show and gates from the rest.
void say_coverage(Result& result, const Request& request);

}  // namespace warmgate::plan::shrink
