// Finds and ends what a run's workers left behind: daemonised descendants, dead children that
// nobody waited for, holders of our pipes. Linux, by /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace warmgate::target {

struct ProcessInfo {
  pid_t pid = 0, parent = 0, group = 0, session = 0;
  char state = '?';               // Z: dead and not waited for
  std::uint64_t start_ticks = 0;  // since boot
  std::string command;            // of /proc/PID/cmdline, spaces between, at most 300 bytes
};

/// False if there is no such process. `command` only where asked for.
bool read_process(pid_t pid, ProcessInfo& out, bool with_command = false);

/// Children of `pid`, all its threads'.
std::vector<pid_t> children_of(pid_t pid);

/// Does the environment that this process was started with hold `entry` (NAME=value)?
bool has_environment(pid_t pid, const std::string& entry);

/// Makes this process the one that orphaned descendants fall to, and SIGCHLD not ignored (ignored,
/// ends of children cannot be seen). Once per process, cheap afterwards.
void become_subreaper();

/// Our children that are workers of some run, so that no other run takes them for orphans.
void register_worker(pid_t pid);
void forget_worker(pid_t pid);

/// The descendants of one run that outlived their workers. An orphan belongs to the run if it has
/// the run's marker in its environment, or the group or session of a process that does.
class Orphans {
 public:
  explicit Orphans(std::string marker) : marker_(std::move(marker)) {}  // WARMGATE_RUN=id
  /// A process group that is the run's for certain; that of this program is never taken.
  void add_group(pid_t group);
  /// Living orphans of this run and their descendants. Dead ones are waited for on the way.
  std::vector<ProcessInfo> find();
  /// SIGKILL to all of them, until none is left or `rounds` are over (1 ms each). How many are
  /// left.
  std::size_t kill_all(int rounds = 2000);

 private:
  std::string marker_;
  std::set<pid_t> groups_;
};

/// Processes other than ours that have one of these pipes (inodes) open. Reads all of /proc/*/fd:
/// milliseconds, so only where a pipe stays open though nobody is left that should hold it.
std::vector<ProcessInfo> holders_of_pipes(const std::vector<std::uint64_t>& inodes);

}  // namespace warmgate::target
