// Activations of one stretch of work: taken one by one, given back together at the end. They count
// as alive together until then, an upper bound of what a caching allocator holds. Stretches nest:
// while one is open, none around it takes more.
#pragma once

#include "harness/engine/memory/device_memory.h"
#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

class Activations {
 public:
  Activations(DeviceMemory& memory, DeviceMemory::Site site)
      : memory_(memory), site_(site), scope_(memory.enter()) {}
  ~Activations() { memory_.leave(scope_, site_, held_); }
  Activations(const Activations&) = delete;
  Activations& operator=(const Activations&) = delete;

  /// What nobody has written in it yet is poison where memory is real.
  Tensor make(DType dtype, Shape shape) {
    memory_.check_innermost(scope_);
    Tensor t = make_tensor(dtype, shape);
    const Allocation taken = memory_.alloc(site_, t.bytes);
    held_ += taken.bytes;
    t.address = taken.address;
    return t;
  }

 private:
  DeviceMemory& memory_;
  DeviceMemory::Site site_;
  DeviceMemory::Scope scope_;
  std::int64_t held_ = 0;
};

}  // namespace warmgate::engine
