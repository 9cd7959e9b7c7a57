// What the end of a run is turned into: events of the harness, with the evidence for each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/target/target.h"

namespace warmgate::target {

/// How often the kernel's memory killer struck since boot; -1 if it does not say.
std::int64_t kernel_oom_kills();

/// Does this text say that memory ran out (bad_alloc, MemoryError, out of memory …)?
bool says_out_of_memory(std::string_view text);

/// Why the end of this worker looks like lack of memory, "" if nothing says so: its last fault, a
/// line it printed, or a SIGKILL that was not ours while the kernel's memory killer struck.
std::string oom_evidence(const verdict::WorkerEnd& end, const std::string& source,
                         const trace::Trace& trace, const std::vector<verdict::Output>& outputs,
                         bool kernel_killed);

/// Files below `folder`, relative, sorted, at most `limit`.
std::vector<std::string> files_below(const std::filesystem::path& folder, std::size_t limit);

/// Masks every string of every event (bodies and sources stay otherwise as they are). What shows by
/// its shape is appended to `found`.
void mask_events(std::vector<trace::Event>& events, const std::vector<std::string>& secrets,
                 std::vector<std::string>* found = nullptr,
                 const std::function<bool(const trace::Event&)>& which = {});
void mask_events(trace::Trace& trace, const std::vector<std::string>& secrets,
                 std::vector<std::string>* found = nullptr);

/// What showed by its shape somewhere is masked wherever else it stands, and kept in
/// result.secrets for those who write more than the result.
void mask_found(TargetResult& result, std::vector<std::string> found);

/// Joins the harness's events to the trace, by time, and masks all of it. `seen`: a worker's own
/// events hold a secret; `found`: what showed itself as one in what they printed.
void mask_run(TargetResult& result, std::vector<trace::Event> of_harness,
              const std::vector<std::string>& secrets, bool seen, std::vector<std::string> found);

}  // namespace warmgate::target
