// The op's table for an oracle's rope.
#pragma once

#include "kernels/cpu/rope.h"
#include "kernels/numerics/device.h"
#include "kernels/reference/rope.h"

namespace warmgate::numerics {

inline std::vector<float> rope_table(const reference::Rope& rope, std::int64_t rows) {
  std::vector<float> out(static_cast<std::size_t>(rows * 64));
  device()->fill_rope_table({rows, rope.theta, rope.yarn, rope.factor, rope.beta_fast,
                             rope.beta_slow, static_cast<std::int64_t>(rope.original_length),
                             out.data()});
  return out;
}

}  // namespace warmgate::numerics
