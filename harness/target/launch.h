// Starts one process the way a watcher needs it: own process group, default signals, no descriptor
// but those it was given, dead as soon as its parent is, and a failing exec told apart from a
// program that ends with 127.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/target/fd.h"

namespace warmgate::target {

struct LaunchRequest {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH of `env` if it has no slash
  std::vector<std::string> env;   // the whole environment, NAME=value
  std::string cwd;                // "" = ours; a relative argv[0] is relative to it
  int stdin_fd = -1, stdout_fd = -1, stderr_fd = -1;  // of ours, >= 3
  std::vector<int> keep_fds;  // open in the child under the same numbers; all others are closed
  std::optional<std::int64_t> address_space_bytes;  // RLIMIT_AS
};

struct Launched {
  pid_t pid = -1;  // also its process group
  Fd pidfd;        // close-on-exec, readable once the process ended
};

/// Throws std::system_error naming the step that failed and the program ("cannot start X: exec").
/// The child gets SIGKILL when the calling *thread* ends (PR_SET_PDEATHSIG follows the thread), so
/// the caller must outlive it; run_target() does, because it blocks until the end of the run.
Launched launch(const LaunchRequest& request);

/// Full path of `name` in the PATH given ("" = /bin:/usr/bin); `name` itself if it has a slash or
/// is not found.
std::string find_program(const std::string& name, const std::string& path);

/// Our environment as NAME=value, with `over` set over it, then `without` taken out.
std::vector<std::string> inherited_environment(const std::map<std::string, std::string>& over,
                                               const std::vector<std::string>& without);

/// A pipe of ours, both ends close-on-exec and >= 3, the reading one non-blocking.
struct Pipe {
  Fd read, write;
};
/// `wish_bytes` = 0 leaves the kernel's size. Throws std::system_error.
Pipe make_pipe(int wish_bytes = 0);
/// Opens `path` close-on-exec with a number >= 3. Throws std::system_error naming the path.
Fd open_high(const char* path, int flags);

}  // namespace warmgate::target
