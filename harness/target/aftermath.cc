#include "harness/target/aftermath.h"

#include <signal.h>
#include <unistd.h>

#include <set>
#include <utility>

#include "harness/target/evidence.h"
#include "harness/target/leftover_events.h"
#include "harness/trace/wire.h"

namespace warmgate::target {

std::size_t Aftermath::remove(std::vector<ProcessInfo> left, const Workers& workers, bool count) {
  if (left.empty()) {
    // Nobody carries our marker, yet a pipe of ours is open somewhere.
    std::vector<std::uint64_t> pipes;
    for (const auto& worker : workers) {
      for (const std::uint64_t inode : worker->open_pipes()) pipes.push_back(inode);
    }
    left = holders_of_pipes(pipes);
    for (const ProcessInfo& process : left) {
      ::kill(process.pid, SIGKILL);
      orphans_.add_group(process.group);  // so that it is waited for
    }
  }
  if (count) {
    note(leftover_processes(left, secrets_));
    note_shared_memory(left, workers);
  }
  return orphans_.kill_all();
}

void Aftermath::note_shared_memory(const std::vector<ProcessInfo>& left, const Workers& workers) {
  if (std::exchange(shm_noted_, true)) return;
  std::set<pid_t> pids;
  for (const auto& worker : workers) pids.insert(worker->pid());
  std::vector<trace::Event> found = leftover_memory(shm_, left, std::move(pids));
  for (trace::Event& event : found) {
    // Its name holds a pid of the run, or who has it open is the run's and about to end: nobody
    // else will ever remove it.
    if (event.flag("of_run")) event.body.set("removed", ::unlink(event.str("path").c_str()) == 0);
  }
  note(std::move(found));
}

void Aftermath::note_files(const std::filesystem::path& folder) {
  for (const std::string& file : files_below(folder, kMostLeftovers)) {
    events_.push_back(trace::harness_event(
        "leftover", {{"what", "file"}, {"path", (folder.filename() / file).string()}}));
  }
}

void Aftermath::note(std::vector<trace::Event> events) {
  for (trace::Event& event : events) events_.push_back(std::move(event));
}

}  // namespace warmgate::target
