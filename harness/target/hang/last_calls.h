// The driver call that each thread of a process is in, as the probe in it keeps it
// (trace/wire_calls.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace warmgate::target {

struct LastCall {
  long tid = 0;
  std::string call;                // "cuStreamSynchronize"
  std::optional<double> inside_s;  // in it for so long; empty: it has come back from it
  std::uint64_t calls = 0;         // entered so far
};

struct ProcessCalls {
  pid_t pid = 0;  // as the process itself saw it: another number in a container
  std::vector<LastCall> threads;
};

/// Empty if the file is none, or cannot be read. Times are of the machine's monotonic clock.
std::optional<ProcessCalls> read_last_calls(const std::filesystem::path& file, std::int64_t now_ns);

}  // namespace warmgate::target
