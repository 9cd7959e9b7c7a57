// The file in which the probe of a process keeps, for each thread, the driver call that it is in:
// mapped and shared, so that it can be read when the process hangs, and after it was killed.
// One writer a slot; a reader may see a call that has just ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace warmgate::trace {

/// Beside the events of the run: this, and the number of the process.
inline constexpr const char* kCallTableFile = "calls.";
/// One byte beside them, written by the harness: 0 starting, 1 the engine said that it is ready.
inline constexpr const char* kReadyFile = "ready";

inline constexpr char kCallTableMagic[8] = {'w', 'g', 'c', 'a', 'l', 'l', 's', '1'};
inline constexpr std::size_t kCallSlots = 255;  // threads; more are not followed

struct alignas(64) CallTableHead {
  char magic[8];
  std::int64_t pid;  // as the process itself sees it
  std::uint64_t slots, slot_bytes;
};

struct alignas(64) CallSlot {
  std::atomic<std::int64_t> tid;       // the kernel's; 0: free
  std::atomic<std::int64_t> since_ns;  // monotonic; 0: in no call
  std::atomic<std::uint64_t> calls;    // entered so far
  char call[40];                       // the last one entered, ended by a zero
};

struct CallTableFile {
  CallTableHead head;
  CallSlot slots[kCallSlots];
};
static_assert(sizeof(CallSlot) == 64 && sizeof(CallTableFile) == 16384);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace warmgate::trace
