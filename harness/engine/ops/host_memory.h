// Memory of a device that is the host itself: one reserved address range, filled with pages as they
// are touched. Lasting memory grows from its start, scratch is a stack behind it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "harness/engine/ops/device.h"
#include "harness/engine/ops/scratch_holes.h"

namespace warmgate::engine {

class HostMemory final : public Backing {
 public:
  /// Lasting memory may be taken and given back four times over; more throws.
  explicit HostMemory(std::int64_t total_bytes);
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  std::uint64_t take(std::int64_t bytes, Fresh fresh) override;
  void give_back(std::uint64_t address, std::int64_t bytes) override;
  std::uint64_t push(std::int64_t bytes) override;
  std::uint64_t mark() const override { return scratch_.next; }
  void pop_to(std::uint64_t mark) override;
  void pop(std::uint64_t address, std::int64_t bytes) override;

 private:
  /// [begin, end) is reserved, [begin, usable) may be read and written, [begin, next) is taken.
  struct Range {
    std::uint64_t begin = 0, end = 0, usable = 0, next = 0;
  };
  static std::uint64_t advance(Range& range, std::int64_t bytes);

  void* base_ = nullptr;
  std::size_t size_ = 0;
  Range lasting_, scratch_;
  ScratchHoles holes_;
};

}  // namespace warmgate::engine
