// A parent-death signal reaches our workers, not their children. So a small process waits for our
// end and then kills whatever still carries the marker of one of our runs.
#pragma once

#include <string>

namespace warmgate::target {

/// What WARMGATE_RUN begins with in every run of this process: "<pid>.<start>.".
const std::string& run_prefix();

/// Starts the guard, once per process; later calls cost nothing. It ends with this process; at a
/// normal exit it is sent away first. Where it cannot be started, only direct workers die with us.
void ensure_guard();

/// Its pid, 0 if there is none.
int guard_pid();

}  // namespace warmgate::target
