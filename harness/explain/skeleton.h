// A scenario that would start the same server again, from what its log says: the beginning of a
// reproduction, to be completed by a person.
#pragma once

#include <string>

#include "harness/explain/launch.h"
#include "harness/explain/reading.h"

namespace warmgate::explain {

/// YAML of the scenario language with comments on what the log does not say. It expects what the
/// log shows: run it, and PASS means that the failure is reproduced. `log` is named in the text.
std::string skeleton(const Reading& reading, const Launch& launch, const std::string& log);

}  // namespace warmgate::explain
