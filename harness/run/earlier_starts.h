// Starts of the same variant within one call that share a kernel cache: the later ones should find
// there what the earlier ones compiled. A trace cannot know of other runs, so it is told.
#pragma once

#include <vector>

#include "harness/run/schedule.h"

namespace warmgate::run {

/// Adds to the trace of every native run that began after `starts` others of its variant had done
/// their work, all with one cache: {"ev":"store","store":"kernels","path":…,
/// "status":"filled","starts":N}.
/// `cache`: its folder, "" = there is none and nothing is told.
void tell_earlier_starts(std::vector<Job>& jobs, const std::string& cache);

}  // namespace warmgate::run
