#include "harness/target/leftover_events.h"

#include "harness/target/mask.h"

namespace warmgate::target {

std::vector<trace::Event> leftover_processes(const std::vector<ProcessInfo>& left,
                                             const std::vector<std::string>& secrets) {
  std::vector<trace::Event> out;
  for (std::size_t i = 0; i < left.size() && i < kMostLeftovers; ++i) {
    const std::string command = mask(left[i].command, secrets);
    out.push_back(trace::harness_event(
        "leftover", {{"what", "process"}, {"pid", left[i].pid}, {"cmd", command}}));
    for (const std::string& port : listening_ports(left[i].pid)) {
      out.push_back(trace::harness_event(
          "leftover", {{"what", "port"}, {"port", port}, {"pid", left[i].pid}, {"cmd", command}}));
    }
  }
  return out;
}

std::vector<trace::Event> leftover_memory(const SharedMemoryWatch& watch,
                                          const std::vector<ProcessInfo>& left,
                                          std::set<pid_t> workers) {
  std::set<pid_t> alive;
  for (const ProcessInfo& process : left) alive.insert(process.pid);
  workers.insert(alive.begin(), alive.end());
  std::vector<trace::Event> out;
  for (const SharedMemory& found : watch.fresh(workers, alive, kMostLeftovers)) {
    out.push_back(trace::harness_event(
        "leftover",
        {{"what", "shm"}, {"path", found.path}, {"of_run", found.of_run}, {"why", found.why}}));
  }
  return out;
}

}  // namespace warmgate::target
