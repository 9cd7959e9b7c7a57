// The threads of a process that does not end, as the kernel shows them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace warmgate::target {

struct ThreadState {
  long tid = 0;
  std::string name;  // /proc/PID/task/TID/comm
  char state = '?';  // R, S, D, Z, T …
  std::string wait;  // the system call that it is in, or where the kernel has it wait
  double cpu_s = 0;  // CPU time so far: one that computes is no thread that waits
  std::vector<std::string> kernel_stack;  // innermost first; needs CAP_SYS_ADMIN, else empty
};

/// At most `most` threads, the first one first. Empty if there is no such process.
std::vector<ThreadState> threads_of(pid_t pid, std::size_t most = 64);

/// True where the process has a handler for this signal (its SigCgt).
bool catches(pid_t pid, int signal);
/// True where the process has this very file open under this number.
bool is_open_as(pid_t pid, std::int64_t fd, const std::filesystem::path& file);

/// "futex" for 202 on x86-64; "system call N" for one that is not named here.
std::string system_call_name(long number);

}  // namespace warmgate::target
