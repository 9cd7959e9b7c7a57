// The memory that ranks exchange their collectives through: a page for all, then one a rank.
// All of it is zero when the harness made it; the first rank that comes writes the stamp.
//
// An operation: a rank writes what it enters into its slot, then adds one to `arrived`. The rank
// that makes `arrived` a multiple of world wakes the others. Everybody then compares all slots, so
// all ranks come to the same verdict. Two calls a slot are enough: nobody can enter operation n+2
// before everybody entered n+1, and nobody enters n+1 before he has read the slots of n.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace warmgate::engine::shared {

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kNameBytes = 48, kWhyBytes = 512;
inline constexpr int kMostRanks = 1024;

enum class Kind : std::uint32_t { kNone, kAllReduce, kAllGather, kBarrier, kAllMin };
const char* to_string(Kind kind);

/// Magic, layout version and world in one word, so that one compare-and-swap settles it.
constexpr std::uint64_t stamp(int world) {
  constexpr std::uint64_t kMagic = 0x77676374, kVersion = 1;  // "wgct"
  return kMagic << 32 | kVersion << 16 | static_cast<std::uint64_t>(world);
}

struct Header {
  std::atomic<std::uint64_t> stamp;
  std::atomic<std::uint64_t> arrived;  // over all operations
  std::atomic<std::uint32_t> wake;     // futex word: changes whenever waiters should look
  std::atomic<std::uint32_t> failed;   // 1 + the rank that failed first, 0: none
};

/// What a rank entered. Read by others only after `arrived` said that it is complete.
struct Call {
  Kind kind;
  std::int64_t bytes, seq, value;
  char communicator[kNameBytes];  // cut, with a 0 at the end
  std::uint64_t communicator_hash;
};

struct Slot {
  enum State : std::uint32_t { kAbsent, kHere, kLeft };
  std::atomic<std::uint32_t> state;
  std::atomic<std::uint64_t> entered;  // operations
  pthread_mutex_t alive;               // robust; held by the rank as long as it lives
  Call calls[2];                       // operation n in calls[n % 2]
  char why[kWhyBytes];                 // why it failed; complete before Header::failed names it
};

static_assert(sizeof(Header) <= kPage && sizeof(Slot) <= kPage);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace warmgate::engine::shared
