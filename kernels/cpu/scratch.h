// Buffers that kernels keep between calls.
#pragma once

#include <cstdint>
#include <vector>

namespace warmgate::kernels::cpu {

/// At least `count` elements, contents unspecified; grows, never shrinks. One a thread and place:
///   static thread_local Scratch<float> keys; float* k = keys.get(n);
template <class T>
class Scratch {
 public:
  T* get(std::int64_t count) {
    const auto size = static_cast<std::size_t>(count);
    if (values_.size() < size) values_.resize(size);
    return values_.data();
  }

 private:
  std::vector<T> values_;
};

}  // namespace warmgate::kernels::cpu
