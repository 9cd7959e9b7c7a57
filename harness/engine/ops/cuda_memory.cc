#include "harness/engine/ops/cuda_memory.h"

#include <algorithm>
#include <stdexcept>

namespace warmgate::engine {

namespace {

constexpr std::uint8_t kPoisoned = 0xFF;
constexpr std::int64_t kGrowth = std::int64_t{32} << 20;  // scratch and small pieces grow by this
constexpr std::int64_t kOwnFrom = std::int64_t{4} << 20;  // from here on a piece has its own memory

std::uint64_t up(std::uint64_t value, std::int64_t unit) {
  const auto u = static_cast<std::uint64_t>(unit);
  return (value + u - 1) / u * u;
}

}  // namespace

CudaMemory::CudaMemory(kernels::cuda::Runtime& runtime, std::int64_t total_bytes)
    : runtime_(runtime) {
  constexpr std::int64_t kMost = std::int64_t{1} << 44;  // as on the host
  if (total_bytes < 0 || total_bytes > kMost)
    throw std::runtime_error("no addresses for device memory of " + std::to_string(total_bytes) +
                             " bytes");
  const auto total =
      static_cast<std::int64_t>(up(static_cast<std::uint64_t>(total_bytes), kGrowth)) + kGrowth;
  size_ = 6 * total;
  base_ = runtime_.reserve(size_);
  const auto part = static_cast<std::uint64_t>(total);
  lasting_ = {base_, base_ + 4 * part, base_, base_};
  small_ = {lasting_.end, lasting_.end + part, lasting_.end, lasting_.end};
  scratch_ = {small_.end, small_.end + part, small_.end, small_.end};
}

CudaMemory::~CudaMemory() {
  try {
    for (const auto& [address, bytes] : pieces_) runtime_.unmap(address, bytes);
    runtime_.release(base_, size_);
  } catch (const std::exception&) {
    // The device failed before; the process ends and the driver takes everything back.
  }
}

void CudaMemory::map(std::uint64_t address, std::int64_t bytes) {
  runtime_.map(address, bytes);
  pieces_[address] = bytes;
}

std::uint64_t CudaMemory::advance(Range& range, std::int64_t bytes) const {
  const auto size = static_cast<std::uint64_t>(bytes);
  if (size > range.end - range.next)
    throw std::runtime_error("device memory: no addresses left for " + std::to_string(bytes) +
                             " bytes");
  const std::uint64_t out = range.next;
  range.next = out + size;
  return out;
}

void CudaMemory::map_up_to(Range& range, std::uint64_t end, std::int64_t step) {
  if (end <= range.usable) return;
  const std::uint64_t usable = std::min(range.end, up(end, step));
  map(range.usable, static_cast<std::int64_t>(usable - range.usable));
  range.usable = usable;
}

std::uint64_t CudaMemory::take(std::int64_t bytes, Fresh fresh) {
  std::uint64_t out = 0;
  if (bytes >= kOwnFrom || fresh == Fresh::kStandIn) {
    lasting_.next = up(lasting_.next, runtime_.granularity());
    out = advance(lasting_, bytes);
    if (fresh == Fresh::kStandIn) return out;
    map(out,
        static_cast<std::int64_t>(up(static_cast<std::uint64_t>(bytes), runtime_.granularity())));
    lasting_.next = up(lasting_.next, runtime_.granularity());
  } else {
    out = advance(small_, bytes);
    map_up_to(small_, small_.next, kGrowth);
  }
  runtime_.fill(out, bytes, fresh == Fresh::kPoison ? kPoisoned : 0);
  return out;
}

void CudaMemory::give_back(std::uint64_t address, std::int64_t bytes) {
  try {
    return_to_device(address, bytes);
  } catch (const kernels::cuda::DeviceFault&) {
    // Owners give back in destructors, also on the way out of a fault of the device: what failed is
    // told by whoever waits for it next, and the driver takes everything back.
  }
}

void CudaMemory::return_to_device(std::uint64_t address, std::int64_t bytes) {
  const auto it = pieces_.find(address);
  if (address < small_.begin) {
    if (it == pieces_.end()) return;  // a stand-in
    runtime_.unmap(it->first, it->second);
    pieces_.erase(it);
    return;
  }
  runtime_.fill(address, bytes, kPoisoned);
}

std::uint64_t CudaMemory::push(std::int64_t bytes) {
  const std::uint64_t out = advance(scratch_, bytes);
  map_up_to(scratch_, scratch_.next, kGrowth);
  if (poisons_) runtime_.fill(out, bytes, kPoisoned);
  return out;
}

void CudaMemory::pop_to(std::uint64_t mark) { holes_.pop_to(scratch_.next, mark); }

void CudaMemory::pop(std::uint64_t address, std::int64_t bytes) {
  holes_.pop(scratch_.next, address, bytes);
}

}  // namespace warmgate::engine
