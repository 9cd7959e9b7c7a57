// Late compilations seen from outside: files that appear in the cache stores after ready, and
// compilers among the descendants. No overhead in the engine, any vendor; polling at a bounded
// share of one core.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/target/server/stores.h"
#include "harness/trace/event.h"

namespace warmgate::target {

struct CensusOptions {
  std::vector<PreparedStore> stores;
  std::string marker;              // WARMGATE_RUN=… of this run: who carries it is of the run
  double interval_s = 0.05;        // at least; grows so that polling stays below max_share
  double max_share = 0.05;         // of one core
  std::size_t max_files = 200000;  // entries looked at in one store; more: counted as cut
  std::size_t max_events = 500;    // of each sort; more are counted only
};

struct CensusResult {
  std::uint64_t compiled_files = 0;  // groups of files that appeared in stores after ready
  std::uint64_t compilers = 0;  // compiler runs after ready (one for a chain nvcc → cicc → ptxas)
  std::uint64_t compilers_before = 0;  // before ready, for reports
  std::uint64_t outside = 0;           // files that appeared where a store should not be any more
  std::uint64_t dropped = 0;           // events beyond max_events
  std::vector<std::string> cut;        // stores too large to watch whole
  std::uint64_t polls = 0;
  double cpu_s = 0;
};

/// Events, src "census":
///   compile {kernel (what the file or the compiler's input is called), key (STORE:kernel or
///   PROGRAM:kernel, the same in every run), arch ("" where it is not known), source: compiler,
///   status: seen, phase: serve, store + path | program + pid}, rank where path or process title
///   tell it, or where the root has one. Files of one folder and kernel are one event, and so is a
///   chain of compilers.
///   store {store, path, status: outside, files, example}, once for each store of which something
///   appeared at its default place although it was told to be elsewhere (by this run, or by
///   another process of this user: the file system does not say);
///   store {…, status: downloaded} where files with contents appeared in a store of downloads at
///   any time of the run;
///   store {…, status: rebuilt, held} where as many files as a warm store of four or
///   more held appeared before ready: the engine did not use them;
///   store {…, status: grew} where something appeared after ready in any other store that holds no
///   compilations.
/// Compilers in containers are not descendants; they are seen only if they carry the marker.
class Census {
 public:
  Census(CensusOptions options, std::function<void(trace::Event)> emit);
  ~Census();  // stops
  Census(const Census&) = delete;
  Census& operator=(const Census&) = delete;

  /// A process whose descendants are the run's; any time, any thread.
  void add_root(pid_t pid, int rank);
  /// Takes the first inventory (so, before the members are started), then polls in a thread.
  void start();
  /// From `t_ns` on a compilation is late. Takes a look itself (some ms), so that what the next
  /// request sets off cannot be taken for older. Any thread; the first call counts.
  void ready(std::int64_t t_ns);
  /// A last look, then the thread ends. Also `store` events of what was written elsewhere.
  CensusResult stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmgate::target
