// What every process of a run does at the moment in which it is given up on, before it is ended:
// the only moment in which that can be seen.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/trace/event.h"

namespace warmgate::target {

struct HangProcess {
  pid_t pid = 0;
  std::string command;
  std::optional<int> rank;
};

/// The workers of these numbers and ranks with all their descendants, at most 64. A descendant has
/// the rank that its title names, else that of its worker.
std::vector<HangProcess> with_descendants(const std::vector<std::pair<pid_t, int>>& workers);

/// Events of the harness, for each process one `hang`: {pid, process, thread_count, state, waits
/// (the kernel's word for it), call and inside_s (of the driver, from the probe), kernels[]
/// (running on a device), frames[] (of the Python thread that says most, innermost first), idle (it
/// only waits for another), how[], missing[]}; and `stack` for each thread: {pid, tid, thread, how:
/// proc | probe | faulthandler | py-spy, frames[]}, at most 400.
///
/// Asks first, then waits for all at once: a second for faulthandler (processes whose plugin told a
/// signal for it), `patience` for core dumps (processes that have a pipe in `events`), and py-spy
/// for what is left of Python. Changes nothing in a process that did not ask for it.
std::vector<trace::Event> hang_evidence(const std::vector<HangProcess>& processes,
                                        const std::filesystem::path& events,
                                        const trace::Trace& trace,
                                        std::chrono::milliseconds patience);

}  // namespace warmgate::target
