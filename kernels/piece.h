// A stretch of a device's memory.
#pragma once

#include <cstdint>

namespace warmgate::kernels {

struct Piece {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
};

}  // namespace warmgate::kernels
