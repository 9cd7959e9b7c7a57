// What a run leaves besides processes and files of its own folder: shared memory objects and ports.
// Only what can be laid at its door is; the rest is said without blame.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace warmgate::target {

/// A name that is new in /dev/shm since the run began, and belongs to this user.
struct SharedMemory {
  std::string path;
  /// The run's for certain: its name holds a pid of the run as a number of its own, or a process
  /// that the run left has it open or mapped. Else anybody of this user may have made it.
  bool of_run = false;
  std::string why;
};

/// Looks at /dev/shm when it is made and again when it is asked. Objects that a living process
/// outside of the run has open or mapped are that one's and never listed.
class SharedMemoryWatch {
 public:
  explicit SharedMemoryWatch(std::string folder = "/dev/shm");
  /// `pids`: every process that is known to be of the run; `left`: those of them that still live.
  /// At most `most` entries.
  std::vector<SharedMemory> fresh(const std::set<pid_t>& pids, const std::set<pid_t>& left,
                                  std::size_t most) const;

 private:
  std::map<std::string, std::uint64_t> names() const;  // name → inode

  std::string folder_;
  std::map<std::string, std::uint64_t> before_;
};

/// Where a process accepts TCP connections ("127.0.0.1:8000", "[::]:80"), sorted, without
/// duplicates; empty where /proc does not tell.
std::vector<std::string> listening_ports(pid_t pid);

}  // namespace warmgate::target
