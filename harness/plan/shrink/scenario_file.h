// A gate scenario for the small model, in the language of scenarios/README.md.
#pragma once

#include <string>

#include "harness/plan/shrink/shrink.h"

namespace warmgate::plan::shrink {

/// Starts request.preset on the folder, asks for what random weights can show, and for nothing
/// else. Complains if the preset cannot be started without weights.
std::string scenario_text(const Result& result, const Request& request, Complaints& complaints);

}  // namespace warmgate::plan::shrink
