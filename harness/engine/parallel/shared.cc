#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "harness/engine/parallel/collectives.h"
#include "harness/engine/parallel/rank_sum.h"
#include "harness/engine/parallel/sequence.h"
#include "harness/engine/parallel/shared_map.h"
#include "harness/trace/wire.h"

namespace warmgate::engine {

namespace {

using shared::Call;
using shared::copy_text;
using shared::Header;
using shared::Kind;
using shared::Slot;

// How long a waiter sleeps before it looks whether the others still live.
constexpr std::int64_t kSliceNs = 100'000'000;

class SharedCollectives final : public Collectives {
 public:
  SharedCollectives(int fd, int rank, int world, std::int64_t deadline_ms)
      : rank_(rank), world_(world), deadline_ms_(deadline_ms), memory_(fd, rank, world) {}

  int rank() const override { return rank_; }
  int world() const override { return world_; }
  std::int64_t all_reduce(std::string_view communicator, std::int64_t bytes) override {
    return enter(communicator, Kind::kAllReduce, bytes, 0).seq;
  }
  std::int64_t all_gather(std::string_view communicator, std::int64_t bytes) override {
    return enter(communicator, Kind::kAllGather, bytes, 0).seq;
  }
  std::int64_t all_reduce(std::string_view communicator, std::span<std::byte> data,
                          Element element) override {
    return exchange(
        communicator, Kind::kAllReduce, data.size(),
        [&](std::size_t begin, std::size_t size, std::byte* to) {
          std::memcpy(to, data.data() + begin, size);
        },
        [&](std::size_t begin, std::size_t size) {
          sum_.assign(element, size);
          for (int r = 0; r < world_; ++r) sum_.add(memory_.piece(r, meetings_));
          sum_.round_to(data.data() + begin);
        });
  }
  std::int64_t all_gather(std::string_view communicator, std::span<const std::byte> mine,
                          std::span<std::byte> all) override {
    if (all.size() != mine.size() * static_cast<std::size_t>(world_))
      throw std::invalid_argument(
          fmt::format("all_gather: {} bytes of {} ranks into {}", mine.size(), world_, all.size()));
    return exchange(
        communicator, Kind::kAllGather, mine.size(),
        [&](std::size_t begin, std::size_t size, std::byte* to) {
          std::memcpy(to, mine.data() + begin, size);
        },
        [&](std::size_t begin, std::size_t size) {
          for (int r = 0; r < world_; ++r) {
            std::memcpy(all.data() + static_cast<std::size_t>(r) * mine.size() + begin,
                        memory_.piece(r, meetings_), size);
          }
        });
  }
  std::int64_t barrier(std::string_view communicator) override {
    return enter(communicator, Kind::kBarrier, 0, 0).seq;
  }
  std::int64_t all_min(std::string_view communicator, std::int64_t value) override {
    enter(communicator, Kind::kAllMin, sizeof value, value);
    std::int64_t least = value;
    for (int r = 0; r < world_; ++r) least = std::min(least, call(r).value);
    return least;
  }
  void abandon(std::string_view why) override {
    copy_text(slot(rank_).why, why);
    fail(rank_);
  }
  std::int64_t last_seq(std::string_view communicator) const override {
    return numbers_.last(communicator);
  }
  void on_wait(std::function<void()> idle) override { idle_ = std::move(idle); }

 private:
  Header& header() const { return memory_.header(); }
  Slot& slot(int r) const { return memory_.slot(r); }
  /// What rank r entered in the latest meeting.
  Call& call(int r) const { return slot(r).calls[meetings_ % 2]; }

  /// The first meeting of an operation.
  Call& enter(std::string_view communicator, Kind kind, std::int64_t bytes, std::int64_t value) {
    ++operations_;
    Call& mine = next_call();
    mine.kind = kind;
    mine.bytes = bytes;
    mine.seq = numbers_.next(communicator);
    mine.value = value;
    mine.piece = 0;
    mine.communicator_hash = shared::hash_of(communicator);
    copy_text(mine.communicator, communicator);
    meet(mine);
    return mine;
  }

  /// The next piece of the same operation.
  void enter_again() {
    const Call& before = call(rank_);
    Call& mine = next_call();
    mine = before;
    ++mine.piece;
    meet(mine);
  }

  Call& next_call() { return ++meetings_, call(rank_); }

  void meet(const Call& mine) {
    // Somebody gave up before: this rank's coming would complete what nobody waits for any more.
    if (const std::uint32_t failed = header().failed.load(std::memory_order_acquire); failed != 0)
      peer_failed(static_cast<int>(failed) - 1, mine);
    slot(rank_).operations.store(operations_, std::memory_order_relaxed);
    slot(rank_).entered.store(meetings_, std::memory_order_release);
    const std::uint64_t all = meetings_ * static_cast<std::uint64_t>(world_);
    const bool last = header().arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == all;
    if (last) {
      memory_.wake_all();
    } else {
      wait(all, mine);
    }
    compare(mine);
  }

  /// Meets once for each piece of `bytes`: `bring(piece's begin, size, where)` writes this rank's,
  /// `take(begin, size)` reads everybody's.
  template <class Bring, class Take>
  std::int64_t exchange(std::string_view communicator, Kind kind, std::size_t bytes, Bring bring,
                        Take take) {
    std::int64_t seq = -1;
    for (std::size_t begin = 0; begin == 0 || begin < bytes; begin += shared::kPieceBytes) {
      const std::size_t size = std::min(shared::kPieceBytes, bytes - begin);
      bring(begin, size, memory_.piece(rank_, meetings_ + 1));
      if (begin == 0) {
        seq = enter(communicator, kind, static_cast<std::int64_t>(bytes), 0).seq;
      } else {
        enter_again();
      }
      take(begin, size);
    }
    return seq;
  }

  void wait(std::uint64_t all, const Call& mine) {
    const std::int64_t begin = trace::now_ns(), deadline = begin + deadline_ms_ * 1'000'000;
    for (;;) {
      const std::uint32_t seen = header().wake.load(std::memory_order_acquire);
      if (header().arrived.load(std::memory_order_acquire) >= all) return;
      const std::uint32_t failed = header().failed.load(std::memory_order_acquire);
      if (failed != 0) peer_failed(static_cast<int>(failed) - 1, mine);
      const std::int64_t now = trace::now_ns();
      // Every slice, and once at the start: who died before this wait began wakes nobody.
      if (const int lost = lost_rank(); lost >= 0) {
        // It may have come and left, or died, after `arrived` was read above.
        if (header().arrived.load(std::memory_order_acquire) >= all) return;
        fail(lost);
        continue;
      }
      if (now >= deadline) too_late(mine);
      if (idle_ && now > begin + kSliceNs / 2) idle_();
      memory_.sleep(seen, std::min(kSliceNs, deadline - now));
    }
  }

  static std::uint64_t finished(const Slot& slot) {
    return slot.operations.load(std::memory_order_relaxed);
  }

  /// A rank that has not entered this meeting and never will; -1 if all others still may.
  int lost_rank() const {
    for (int r = 0; r < world_; ++r) {
      Slot& other = slot(r);
      if (r == rank_ || other.entered.load(std::memory_order_acquire) >= meetings_) continue;
      const std::uint32_t state = other.state.load(std::memory_order_acquire);
      if (state == Slot::kAbsent) continue;
      if (state == Slot::kLeft) {
        if (header().failed.load() == 0)
          copy_text(other.why, fmt::format("it ended after {} collectives", finished(other)));
        return r;
      }
      // EBUSY: alive. EOWNERDEAD: it died holding the mutex; ENOTRECOVERABLE: somebody saw that
      // before. 0: it is leaving just now, and the next slice sees that.
      const int got = ::pthread_mutex_trylock(&other.alive);
      if (got == 0 || got == EOWNERDEAD) ::pthread_mutex_unlock(&other.alive);
      if (got == EOWNERDEAD || got == ENOTRECOVERABLE) {
        if (header().failed.load() == 0)
          copy_text(other.why, fmt::format("it died after {} collectives", finished(other)));
        return r;
      }
    }
    return -1;
  }

  /// The first failure is the one that counts; later ones follow from it.
  void fail(int failed_rank) {
    std::uint32_t none = 0;
    header().failed.compare_exchange_strong(none, static_cast<std::uint32_t>(failed_rank) + 1,
                                            std::memory_order_acq_rel);
    memory_.wake_all();
  }

  CollectiveCall public_call(const Call& mine) const {
    return {mine.communicator, to_string(mine.kind), mine.bytes, mine.seq};
  }

  [[noreturn]] void peer_failed(int peer, const Call& mine) {
    throw CollectiveError(fmt::format("rank {} failed: {}; rank {} was waiting in {}", peer,
                                      slot(peer).why, rank_, text_of(mine)),
                          "peer_failed", peer, public_call(mine));
  }

  [[noreturn]] void too_late(const Call& mine) {
    std::string who;
    int first = -1;
    for (int r = 0; r < world_; ++r) {
      const std::uint64_t entered = slot(r).entered.load(std::memory_order_acquire);
      if (entered >= meetings_) continue;
      if (first < 0) first = r;
      who += fmt::format("{}rank {} ({})", who.empty() ? "" : ", ", r,
                         slot(r).state.load() == Slot::kAbsent
                             ? std::string("never seen")
                             : fmt::format("{} collectives so far", finished(slot(r))));
    }
    throw CollectiveError(
        fmt::format("rank {} waited {} ms in {}, its collective number {}; missing: {}", rank_,
                    deadline_ms_, text_of(mine), operations_, who),
        "deadline", first, public_call(mine));
  }

  /// All ranks are here; did they enter the same?
  void compare(const Call& mine) {
    const Call& first = call(0);
    for (int r = 1; r < world_; ++r) {
      if (same_operation(first, call(r))) continue;
      throw CollectiveError(fmt::format("ranks disagree at their collective number {}: rank 0 "
                                        "entered {}, rank {} entered {}",
                                        operations_, text_of(first), r, text_of(call(r))),
                            "mismatch", rank_ == r ? 0 : r, public_call(mine));
    }
  }

  int rank_, world_;
  std::int64_t deadline_ms_;
  shared::Map memory_;
  std::uint64_t operations_ = 0, meetings_ = 0;
  SequenceNumbers numbers_;
  RankSum sum_;
  std::function<void()> idle_;
};

}  // namespace

std::unique_ptr<Collectives> make_shared_collectives(int fd, int rank, int world,
                                                     std::int64_t deadline_ms) {
  return std::make_unique<SharedCollectives>(fd, rank, world, deadline_ms);
}

}  // namespace warmgate::engine
