// What the harness itself finds out about warmed compile keys, once per gate: does the body of the
// kernel run on the host with checked integers, and does every listed architecture's compiler take
// it. An engine compiles for its own architecture only; nobody would otherwise look at the others.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/scenario/resolved.h"
#include "harness/target/target.h"
#include "harness/trace/event.h"
#include "kernels/jit/jit.h"

namespace warmgate::run {

/// The keys that warmup asked for, as the contracts count them: distinct over all ranks, sorted.
std::vector<std::string> warmed_keys(const trace::Trace& trace);

/// What the keys of one run still need.
struct KeysLeft {
  std::vector<std::string> warmed;                           // as warmed_keys() gives them
  std::vector<std::pair<std::string, std::string>> compile;  // (architecture, key text)
};

/// Usage: collect() every trace, compile() once, then append_events() to each trace. collect() and
/// append_events() are thread-safe; compile() uses threads of its own.
class KeyJudge {
 public:
  KeyJudge(std::filesystem::path cache_dir, jit::Backend backend);

  /// Notes what this run's keys need: each architecture that its engine did not compile strictly.
  KeysLeft collect(const trace::Trace& trace, const scenario::Resolved& resolved);
  /// Compiles the union strictly, one program per kernel and architecture. Nothing without NVRTC.
  void compile(int threads, const target::CancelToken& cancel);
  /// `left` is what collect() gave for this trace. Appends one `check` (kind host_key) per warmed
  /// key and one `compile` per key and collected architecture, all of src harness. A key of a
  /// kernel that this build does not know gets neither: it is not observed, never assumed.
  void append_events(trace::Trace& trace, const KeysLeft& left);
  /// What could not be compiled and why, one sentence per reason; empty if all was.
  std::vector<std::string> not_observed() const;

 private:
  const jit::HostCheck& host_check(const std::string& text, const jit::Key& key);
  bool can_compile() const;

  jit::Backend backend_;
  jit::Compiler compiler_;
  mutable std::mutex mutex_;
  std::map<std::string, std::optional<jit::Key>> keys_;   // text → key; nullopt: not one of ours
  std::map<std::string, jit::HostCheck> checks_;          // nodes of a map stay where they are
  std::set<std::pair<std::string, std::string>> wanted_;  // (architecture, key text)
  std::map<std::pair<std::string, std::string>, jit::Compiled> compiled_;
};

}  // namespace warmgate::run
