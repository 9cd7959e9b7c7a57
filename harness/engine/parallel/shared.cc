#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "harness/engine/parallel/collectives.h"
#include "harness/engine/parallel/sequence.h"
#include "harness/engine/parallel/shared_memory.h"
#include "harness/trace/wire.h"

namespace warmgate::engine {

namespace shared {

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "nothing";
    case Kind::kAllReduce:
      return "all_reduce";
    case Kind::kAllGather:
      return "all_gather";
    case Kind::kBarrier:
      return "barrier";
    case Kind::kAllMin:
      return "all_min";
  }
  return "garbage";
}

}  // namespace shared

namespace {

using shared::Call;
using shared::Header;
using shared::Kind;
using shared::Slot;

// How long a waiter sleeps before it looks whether the others still live.
constexpr std::int64_t kSliceNs = 100'000'000;

// Not FUTEX_PRIVATE: the word is shared between processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t ns) {
  const timespec timeout{static_cast<time_t>(ns / 1'000'000'000), ns % 1'000'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
  word.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

template <std::size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  const std::size_t n = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), n);
  to[n] = '\0';
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325u;  // FNV-1a: the same in every process
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

std::string text_of(const Call& call) {
  std::string text = to_string(call.kind);
  if (call.kind != Kind::kBarrier) text += fmt::format(" of {} bytes", call.bytes);
  return text + fmt::format(" on '{}' (sequence number {})", call.communicator, call.seq);
}

bool same_operation(const Call& a, const Call& b) {
  return a.kind == b.kind && a.bytes == b.bytes && a.seq == b.seq &&
         a.communicator_hash == b.communicator_hash;
}

class SharedCollectives final : public Collectives {
 public:
  SharedCollectives(int fd, int rank, int world, std::int64_t deadline_ms)
      : rank_(rank), world_(world), deadline_ms_(deadline_ms) {
    map(fd);
    try {
      take_slot();
    } catch (...) {
      ::munmap(base_, size());
      throw;
    }
  }
  ~SharedCollectives() override {
    slot(rank_).state.store(Slot::kLeft, std::memory_order_release);
    ::pthread_mutex_unlock(&slot(rank_).alive);
    wake_all(header().wake);
    ::munmap(base_, size());
  }
  SharedCollectives(const SharedCollectives&) = delete;
  SharedCollectives& operator=(const SharedCollectives&) = delete;

  int rank() const override { return rank_; }
  int world() const override { return world_; }
  std::int64_t all_reduce(std::string_view communicator, std::int64_t bytes) override {
    return enter(communicator, Kind::kAllReduce, bytes, 0).seq;
  }
  std::int64_t all_gather(std::string_view communicator, std::int64_t bytes) override {
    return enter(communicator, Kind::kAllGather, bytes, 0).seq;
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
  std::size_t size() const { return static_cast<std::size_t>(collectives_bytes(world_)); }
  Header& header() const { return *static_cast<Header*>(base_); }
  Slot& slot(int r) const {
    return *reinterpret_cast<Slot*>(static_cast<char*>(base_) +
                                    shared::kPage * (1 + static_cast<std::size_t>(r)));
  }
  /// What rank r entered in the latest operation.
  Call& call(int r) const { return slot(r).calls[operations_ % 2]; }

  void map(int fd) {
    if (world_ < 1 || world_ > shared::kMostRanks || rank_ < 0 || rank_ >= world_)
      throw std::runtime_error(fmt::format("collectives: rank {} of {}", rank_, world_));
    struct stat st {};
    if (::fstat(fd, &st) != 0)
      throw std::runtime_error(
          fmt::format("collectives: descriptor {}: {}", fd, std::strerror(errno)));
    // Only memory files have seals; a file on disk would make the ranks wait for its file system.
    if (!S_ISREG(st.st_mode) || ::fcntl(fd, F_GET_SEALS) < 0)
      throw std::runtime_error(fmt::format("collectives: descriptor {} is no memfd", fd));
    if (st.st_size != collectives_bytes(world_))
      throw std::runtime_error(
          fmt::format("collectives: descriptor {} has {} bytes, {} ranks need {}", fd, st.st_size,
                      world_, collectives_bytes(world_)));
    base_ = ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base_ == MAP_FAILED)
      throw std::runtime_error(fmt::format("collectives: mmap: {}", std::strerror(errno)));
  }

  void take_slot() {
    std::uint64_t found = 0;
    const std::uint64_t mine = shared::stamp(world_);
    if (!header().stamp.compare_exchange_strong(found, mine) && found != mine)
      throw std::runtime_error(fmt::format(
          "collectives: the memory's stamp is {:#x}, this program's for {} ranks is {:#x}", found,
          world_, mine));
    Slot& own = slot(rank_);
    if (own.state.load(std::memory_order_acquire) != Slot::kAbsent)
      throw std::runtime_error(fmt::format("collectives: rank {} is there already", rank_));
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    const bool held =
        ::pthread_mutex_init(&own.alive, &attributes) == 0 && ::pthread_mutex_lock(&own.alive) == 0;
    ::pthread_mutexattr_destroy(&attributes);
    if (!held) throw std::runtime_error("collectives: no process-shared robust mutex");
    own.state.store(Slot::kHere, std::memory_order_release);
  }

  Call& enter(std::string_view communicator, Kind kind, std::int64_t bytes, std::int64_t value) {
    ++operations_;
    Call& mine = call(rank_);
    mine.kind = kind;
    mine.bytes = bytes;
    mine.seq = numbers_.next(communicator);
    mine.value = value;
    mine.communicator_hash = hash_of(communicator);
    copy_text(mine.communicator, communicator);
    // Somebody gave up before: this rank's coming would complete what nobody waits for any more.
    if (const std::uint32_t failed = header().failed.load(std::memory_order_acquire); failed != 0)
      peer_failed(static_cast<int>(failed) - 1, mine);
    slot(rank_).entered.store(operations_, std::memory_order_release);
    const std::uint64_t all = operations_ * static_cast<std::uint64_t>(world_);
    const bool last = header().arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == all;
    if (last) {
      wake_all(header().wake);
    } else {
      wait(all, mine);
    }
    compare(mine);
    return mine;
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
      futex_wait(header().wake, seen, std::min(kSliceNs, deadline - now));
    }
  }

  /// A rank that has not entered this operation and never will; -1 if all others still may.
  int lost_rank() const {
    for (int r = 0; r < world_; ++r) {
      Slot& other = slot(r);
      if (r == rank_ || other.entered.load(std::memory_order_acquire) >= operations_) continue;
      const std::uint32_t state = other.state.load(std::memory_order_acquire);
      if (state == Slot::kAbsent) continue;
      if (state == Slot::kLeft) {
        if (header().failed.load() == 0)
          copy_text(other.why, fmt::format("it ended after {} collectives", other.entered.load()));
        return r;
      }
      // EBUSY: alive. EOWNERDEAD: it died holding the mutex; ENOTRECOVERABLE: somebody saw that
      // before. 0: it is leaving just now, and the next slice sees that.
      const int got = ::pthread_mutex_trylock(&other.alive);
      if (got == 0 || got == EOWNERDEAD) ::pthread_mutex_unlock(&other.alive);
      if (got == EOWNERDEAD || got == ENOTRECOVERABLE) {
        if (header().failed.load() == 0)
          copy_text(other.why, fmt::format("it died after {} collectives", other.entered.load()));
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
    wake_all(header().wake);
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
      if (entered >= operations_) continue;
      if (first < 0) first = r;
      who += fmt::format("{}rank {} ({})", who.empty() ? "" : ", ", r,
                         slot(r).state.load() == Slot::kAbsent
                             ? std::string("never seen")
                             : fmt::format("{} collectives so far", entered));
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
  void* base_ = nullptr;
  std::uint64_t operations_ = 0;
  SequenceNumbers numbers_;
  std::function<void()> idle_;
};

}  // namespace

std::int64_t collectives_bytes(int world) {
  return static_cast<std::int64_t>(shared::kPage) * (1 + world);
}

std::unique_ptr<Collectives> make_shared_collectives(int fd, int rank, int world,
                                                     std::int64_t deadline_ms) {
  return std::make_unique<SharedCollectives>(fd, rank, world, deadline_ms);
}

}  // namespace warmgate::engine
