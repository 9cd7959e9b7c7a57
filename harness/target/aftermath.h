// What a run leaves when its workers are gone: finds it, names it in `leftover` events, ends it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/target/remains.h"
#include "harness/target/sweep.h"
#include "harness/target/worker.h"
#include "harness/trace/event.h"

namespace warmgate::target {

class Aftermath {
 public:
  using Workers = std::vector<std::unique_ptr<Worker>>;

  /// `marker`: the entry that every process of the run has in its environment. Made before the
  /// first worker: shared memory that is there already is nobody's fault. `secrets` must outlive
  /// it.
  Aftermath(std::string marker, const std::vector<std::string>& secrets)
      : orphans_(std::move(marker)), secrets_(secrets) {}

  /// A process group that is the run's for certain.
  void add_group(pid_t group) { orphans_.add_group(group); }
  /// Descendants of the workers that still live.
  std::vector<ProcessInfo> find() { return orphans_.find(); }
  /// Ends `left`, and who else keeps a pipe of the workers open; they are events where they
  /// `count` against the run. Returns how many do not end though they got SIGKILL.
  std::size_t remove(std::vector<ProcessInfo> left, const Workers& workers, bool count);
  /// Shared memory of the run that is still there, removed where it is the run's for certain; once,
  /// and while the processes of `left`, who may be its users, can still be asked.
  void note_shared_memory(const std::vector<ProcessInfo>& left, const Workers& workers);
  /// Files below the folder that the workers had for temporary ones.
  void note_files(const std::filesystem::path& folder);
  /// Everything noted so far, once.
  std::vector<trace::Event> take_events() { return std::exchange(events_, {}); }

 private:
  void note(std::vector<trace::Event> events);

  Orphans orphans_;
  const SharedMemoryWatch shm_;
  const std::vector<std::string>& secrets_;
  std::vector<trace::Event> events_;
  bool shm_noted_ = false;
};

}  // namespace warmgate::target
