// Turns callbacks of the driver into events. Knows neither CUPTI's library nor how it was found, so
// that tests can call it as a driver would.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/probe/call_table.h"
#include "harness/probe/calls.h"
#include "harness/probe/captures.h"
#include "harness/probe/cupti_abi.h"
#include "harness/probe/graph_memory.h"
#include "harness/probe/report.h"

namespace warmgate::probe {

struct ObserverOptions {
  /// Allocations from this size on are events of their own; smaller ones are summed.
  std::int64_t alloc_bytes = 1 << 20;
  /// The first launch of every kernel, before ready and after it, is an event; costs a look into a
  /// table at every launch.
  bool launches = false;
  /// How to ask for a kernel's parameters; empty: what graphs name is not observed.
  std::vector<ParamInfo> parameters;
  /// Listens to launches or stops it: they are needed while something is captured, and cost too
  /// much otherwise. May be empty.
  std::function<void(bool on)> listen_to_launches;
  /// Where the calls of threads are kept, for a hang; may be null.
  CallTable* call_table = nullptr;
  /// Not 0 once the engine is ready (trace/wire_calls.h); null: nobody tells.
  const volatile unsigned char* ready = nullptr;
  /// So long after ready `detach` is called, on a call's way out; < 0: never.
  std::int64_t detach_after_ns = -1;
  std::function<void()> detach;
};

/// Events: `context`, `module` (code arrived on the device: bytes, hash, kernels, names, origin),
/// `load` (the call that brought it, with ms), `alloc`, `free`, `capture`, `graph` (kernels: how
/// many were launched into its capture; blocks: of memory that they name), `replay` (first of each
/// graph), `first_launch` (of each kernel, if asked for; once more after ready), `sync`
/// (inside a capture only). What happens while a stream is captured carries `in_capture`: own (the
/// thread that captures) or other (a thread beside it; only of a global capture). A `free` of
/// memory that kernels of a living graph name carries `named_by`, the graphs.
///
/// origin of code: library = from an image that the loader mapped from a file, or lazily from one
/// that was registered before: a library's own kernels, compiled when it was built. memory = from
/// an image in memory, which somebody compiled or read. file = by the driver from a file.
class Observer {
 public:
  Observer(Report& report, ObserverOptions options) : report_(report), options_(options) {}

  /// Which call the callback of this number of the driver domain is; set once before attaching.
  void name(std::uint32_t id, Call call);
  void on_driver(std::uint32_t id, const cupti::CallbackData& data);
  void on_resource(std::uint32_t id, const cupti::ResourceData& data);

  /// The probe's own time so far and the calls it was spent on.
  std::int64_t own_ns() const { return own_ns_.load(std::memory_order_relaxed); }
  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  /// Sums that no line of their own told; once, at the end.
  void totals();

 private:
  class Timed;
  void enter(Call call, const cupti::CallbackData& data);
  void leave(Call call, const cupti::CallbackData& data, std::int64_t began_ns);
  void loaded(Call call, const void* image, std::int64_t ms_ns, int result);
  void allocated(std::string_view pool, std::uint64_t key, std::int64_t bytes,
                 std::int64_t took_ns);
  void freed(std::string_view pool, std::uint64_t key);
  void launched(std::uint64_t function, const char* symbol);
  void launched_into(std::uint64_t capture, const void* function, void** arguments);
  void captures_changed(bool were_any);
  void instantiated(std::uint64_t exec, std::uint64_t graph, std::int64_t took_ns);
  void mark(trace::Line& line);
  bool is_ready() const { return options_.ready != nullptr && *options_.ready != 0; }
  void maybe_detach(std::int64_t now_ns);

  static constexpr std::uint32_t kMostIds = 4096;
  static constexpr std::size_t kKernels = 1 << 14;

  Report& report_;
  const ObserverOptions options_;
  std::array<Call, kMostIds> calls_of_{};
  Captures captures_;
  std::atomic<std::int64_t> own_ns_{0};
  std::atomic<std::uint64_t> calls_{0};

  std::mutex mutex_;  // of what follows
  GraphMemory::Blocks blocks_;
  GraphMemory graph_memory_;
  std::uint64_t last_block_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> capture_of_graph_;  // CUgraph → its capture
  std::unordered_map<std::uint64_t, bool> replayed_;                   // CUgraphExec
  std::int64_t small_bytes_ = 0;
  std::uint64_t small_ = 0;

  // Open addressing; 0 = free. One for the start and one for what comes after ready.
  std::array<std::array<std::atomic<std::uint64_t>, kKernels>, 2> kernels_{};
  std::atomic<std::int64_t> ready_seen_ns_{0};
  std::atomic<bool> detached_{false};
};

}  // namespace warmgate::probe
