#include "harness/engine/parallel/shared_map.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "harness/engine/parallel/collectives.h"

namespace warmgate::engine {

std::int64_t collectives_bytes(int world) {
  const auto ranks = static_cast<std::size_t>(world);
  return static_cast<std::int64_t>(shared::kPage * (1 + ranks) + 2 * shared::kPieceBytes * ranks);
}

namespace shared {

Map::Map(int fd, int rank, int world) : rank_(rank), world_(world) {
  map(fd);
  try {
    take_slot();
  } catch (...) {
    ::munmap(base_, size());
    throw;
  }
}

Map::~Map() {
  slot(rank_).state.store(Slot::kLeft, std::memory_order_release);
  ::pthread_mutex_unlock(&slot(rank_).alive);
  wake_all();
  ::munmap(base_, size());
}

std::size_t Map::size() const { return static_cast<std::size_t>(collectives_bytes(world_)); }

// Not FUTEX_PRIVATE: the word is shared between processes.
void Map::sleep(std::uint32_t seen, std::int64_t ns) const {
  const timespec timeout{static_cast<time_t>(ns / 1'000'000'000), ns % 1'000'000'000};
  ::syscall(SYS_futex, &header().wake, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void Map::wake_all() const {
  header().wake.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &header().wake, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void Map::map(int fd) {
  if (world_ < 1 || world_ > kMostRanks || rank_ < 0 || rank_ >= world_)
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

void Map::take_slot() {
  std::uint64_t found = 0;
  const std::uint64_t mine = stamp(world_);
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

}  // namespace shared
}  // namespace warmgate::engine
