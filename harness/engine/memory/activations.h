// Activations of one stretch of work: taken one by one, given back together at the end. They count
// as alive together until then, an upper bound of what a caching allocator holds.
#pragma once

#include "harness/engine/memory/device_memory.h"
#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

class Activations {
 public:
  Activations(DeviceMemory& memory, DeviceMemory::Site site) : memory_(memory), site_(site) {}
  ~Activations() { memory_.release(site_, held_); }
  Activations(const Activations&) = delete;
  Activations& operator=(const Activations&) = delete;

  Tensor make(DType dtype, Shape shape) {
    Tensor t = make_tensor(dtype, shape);
    const Allocation taken = memory_.alloc(site_, t.bytes);
    held_ += taken.bytes;
    t.address = taken.address;
    return t;
  }

 private:
  DeviceMemory& memory_;
  DeviceMemory::Site site_;
  std::int64_t held_ = 0;
};

}  // namespace warmgate::engine
