// What an op costs, counted from its shapes.
#pragma once

#include <cstdint>

namespace warmgate::engine {

struct Cost {
  std::int64_t bytes = 0;  // read and written
  std::int64_t flops = 0;  // a multiply-add is two
  std::int64_t launches = 0;
  Cost& operator+=(const Cost& other) {
    bytes += other.bytes;
    flops += other.flops;
    launches += other.launches;
    return *this;
  }
};

}  // namespace warmgate::engine
