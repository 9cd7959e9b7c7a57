// The memfd of the collectives, mapped.
#pragma once

#include "harness/engine/parallel/shared_memory.h"

namespace warmgate::engine::shared {

class Map {
 public:
  /// Maps `fd` and takes the slot of `rank`, whose mutex the calling thread holds from then on.
  /// Throws std::runtime_error if fd is no memfd of the right size and stamp, or the slot is taken.
  Map(int fd, int rank, int world);
  ~Map();
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;

  Header& header() const { return *static_cast<Header*>(base_); }
  Slot& slot(int rank) const {
    return *reinterpret_cast<Slot*>(at(kPage * (1 + static_cast<std::size_t>(rank))));
  }
  /// [kPieceBytes] that `rank` brings to a meeting.
  std::byte* piece(int rank, std::uint64_t meeting) const {
    const auto pieces = 2 * static_cast<std::size_t>(rank) + meeting % 2;
    return reinterpret_cast<std::byte*>(
        at(kPage * (1 + static_cast<std::size_t>(world_)) + kPieceBytes * pieces));
  }
  /// Sleeps until `wake` changes from `seen`, at most `ns`.
  void sleep(std::uint32_t seen, std::int64_t ns) const;
  void wake_all() const;

 private:
  std::size_t size() const;
  char* at(std::size_t offset) const { return static_cast<char*>(base_) + offset; }
  void map(int fd);
  void take_slot();
  int rank_, world_;
  void* base_ = nullptr;
};

}  // namespace warmgate::engine::shared
