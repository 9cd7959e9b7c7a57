// The memory that ranks exchange their collectives through: a page for all, one a rank, then two
// pieces of payload a rank. All of it is zero when the harness made it; the first rank that comes
// writes the stamp.
//
// A meeting: a rank writes what it enters into its slot and its payload into its piece, then adds
// one to `arrived`. The rank that makes `arrived` a multiple of world wakes the others. Everybody
// then compares all slots, so all ranks come to the same verdict. Two calls and two pieces a rank
// are enough: nobody can enter meeting n+2 before everybody entered n+1, and nobody enters n+1
// before he has read what was brought to n. An operation is one meeting for each piece of its
// payload, one if there is none.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace warmgate::engine::shared {

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kPieceBytes = std::size_t{256} << 10;  // of payload that meet at once
inline constexpr std::size_t kNameBytes = 48, kWhyBytes = 512;
inline constexpr int kMostRanks = 1024;

enum class Kind : std::uint32_t { kNone, kAllReduce, kAllGather, kBarrier, kAllMin };
const char* to_string(Kind kind);

/// Magic, layout version and world in one word, so that one compare-and-swap settles it.
constexpr std::uint64_t stamp(int world) {
  constexpr std::uint64_t kMagic = 0x77676374, kVersion = 2;  // "wgct"
  return kMagic << 32 | kVersion << 16 | static_cast<std::uint64_t>(world);
}

struct Header {
  std::atomic<std::uint64_t> stamp;
  std::atomic<std::uint64_t> arrived;  // over all meetings
  std::atomic<std::uint32_t> wake;     // futex word: changes whenever waiters should look
  std::atomic<std::uint32_t> failed;   // 1 + the rank that failed first, 0: none
};

/// What a rank entered. Read by others only after `arrived` said that it is complete.
struct Call {
  Kind kind;
  std::int64_t bytes, seq, value, piece;  // piece: of the payload, from 0
  char communicator[kNameBytes];          // cut, with a 0 at the end
  std::uint64_t communicator_hash;
};

/// "all_reduce of 64 bytes on 'tp' (sequence number 0)".
std::string text_of(const Call& call);
bool same_operation(const Call& a, const Call& b);
std::uint64_t hash_of(std::string_view text);

/// Cut to N - 1 characters.
template <std::size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  const std::size_t n = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), n);
  to[n] = '\0';
}

struct Slot {
  enum State : std::uint32_t { kAbsent, kHere, kLeft };
  std::atomic<std::uint32_t> state;
  std::atomic<std::uint64_t> entered;     // meetings
  std::atomic<std::uint64_t> operations;  // that the last of them was part of
  pthread_mutex_t alive;                  // robust; held by the rank as long as it lives
  Call calls[2];                          // meeting n in calls[n % 2]
  char why[kWhyBytes];                    // why it failed; complete before Header::failed names it
};

static_assert(sizeof(Header) <= kPage && sizeof(Slot) <= kPage);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace warmgate::engine::shared
