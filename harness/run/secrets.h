// The secrets that are known before anything is started: of the environment, of the scenarios'
// variables and arguments, of the command line.
#pragma once

#include <string>
#include <vector>

#include "harness/scenario/scenario.h"

namespace warmgate::run {

/// In every spelling, longest first: what trace::mask_secrets() wants.
std::vector<std::string> known_secrets(const std::vector<const scenario::Scenario*>& scenarios,
                                       const scenario::LoadOptions& options);

}  // namespace warmgate::run
