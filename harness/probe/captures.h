// Which streams are being captured, and by whom: what is loaded, allocated or waited for inside a
// capture breaks it, or is frozen into the graph.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace warmgate::probe {

/// cudaStreamCaptureMode: who must keep from unsafe calls while a capture goes on.
enum class CaptureMode : int { kGlobal = 0, kThread = 1, kRelaxed = 2 };

struct Capture {
  std::uint64_t stream = 0;
  long thread = 0;
  CaptureMode mode = CaptureMode::kGlobal;
  std::int64_t begin_ns = 0;
  std::uint64_t number = 0;  // of this process, from 1
};

/// Thread-safe. At most 64 captures at a time; more are not followed.
class Captures {
 public:
  /// Its number, 0 if there is no room.
  std::uint64_t begin(std::uint64_t stream, long thread, CaptureMode mode, std::int64_t now_ns);
  /// The capture that `stream` ends; number 0 if none is known.
  Capture end(std::uint64_t stream);
  /// The capture that a call of this thread falls into: one that it began itself, else one of
  /// another thread that is global. Number 0: none.
  Capture around(long thread);
  /// Cheap: is anything captured at all?
  bool any() const { return open_.load(std::memory_order_relaxed) != 0; }

 private:
  std::mutex mutex_;
  std::array<Capture, 64> captures_;
  std::atomic<int> open_{0};
  std::uint64_t last_ = 0;
};

}  // namespace warmgate::probe
