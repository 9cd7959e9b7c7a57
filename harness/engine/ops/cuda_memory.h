// Memory of a GPU: one reserved range of addresses with physical memory behind what is in use.
// Lasting memory grows from its start, scratch is a stack behind it.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "harness/engine/ops/device.h"
#include "harness/engine/ops/scratch_holes.h"
#include "kernels/cuda/runtime.h"

namespace warmgate::engine {

class CudaMemory final : public Backing {
 public:
  /// Lasting memory may be taken and given back four times over; more throws. What is given back
  /// returns to the device where it was large enough for memory of its own: a stale view of it
  /// faults then, and reads poison otherwise.
  CudaMemory(kernels::cuda::Runtime& runtime, std::int64_t total_bytes);
  ~CudaMemory() override;
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  std::uint64_t take(std::int64_t bytes, Fresh fresh) override;
  void give_back(std::uint64_t address, std::int64_t bytes) override;
  std::uint64_t push(std::int64_t bytes) override;
  void poison_scratch(bool poisons) override { poisons_ = poisons; }
  std::uint64_t mark() const override { return scratch_.next; }
  void pop_to(std::uint64_t mark) override;
  void pop(std::uint64_t address, std::int64_t bytes) override;

 private:
  /// [begin, end) is reserved, [begin, usable) of scratch and [shared, usable) of lasting memory is
  /// mapped, next is the first free address.
  struct Range {
    std::uint64_t begin = 0, end = 0, usable = 0, next = 0;
  };
  std::uint64_t advance(Range& range, std::int64_t bytes) const;
  void map_up_to(Range& range, std::uint64_t end, std::int64_t step);
  void map(std::uint64_t address, std::int64_t bytes);
  void return_to_device(std::uint64_t address, std::int64_t bytes);

  kernels::cuda::Runtime& runtime_;
  std::uint64_t base_ = 0;
  std::int64_t size_ = 0;
  bool poisons_ = true;  // scratch
  Range lasting_, small_, scratch_;
  std::map<std::uint64_t, std::int64_t> pieces_;  // mapped, by address
  ScratchHoles holes_;
};

}  // namespace warmgate::engine
