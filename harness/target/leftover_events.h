// What a run left, as `leftover` events.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/target/remains.h"
#include "harness/target/sweep.h"
#include "harness/trace/event.h"

namespace warmgate::target {

/// At most so many of one kind are named.
inline constexpr std::size_t kMostLeftovers = 20;

/// Processes, and the ports that they listen on; command lines masked.
std::vector<trace::Event> leftover_processes(const std::vector<ProcessInfo>& left,
                                             const std::vector<std::string>& secrets);

/// Shared memory that is new since the watch was made. `workers`: pids of the run's workers.
std::vector<trace::Event> leftover_memory(const SharedMemoryWatch& watch,
                                          const std::vector<ProcessInfo>& left,
                                          std::set<pid_t> workers);

}  // namespace warmgate::target
