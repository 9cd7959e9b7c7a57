// What the kernel bodies are written in, for the host: integers are checked, constants are members
// of the object that the body is compiled into (run-time values from the key), threads run one
// after another. The device's counterpart is kernels/jit/bodies/device_prelude.cuh.
#pragma once

#include <source_location>

#include "kernels/jit/checked.h"

namespace warmgate::jit {

using IntsIn = Pointer<const std::int32_t>;
using IntsOut = Pointer<std::int32_t>;

struct Int4 {
  Int x, y, z, w;
};

inline Int wg_min(Int a, Int b) { return a < b ? a : b; }
inline Int wg_max(Int a, Int b) { return a > b ? a : b; }

/// The device replaces the value by what the class says, so a value outside its class is a fault.
inline Int wg_classified(Int declared, Int value,
                         std::source_location w = std::source_location::current()) {
  const bool fits = declared == 1 ? value == 1 : declared == 16 ? (value & 15) == 0 : true;
  if (!fits) fault("class_mismatch", value.raw(), "is not of class", declared.raw(), w);
  return value;
}

inline Int wg_lookup(bool aligned, const IntsIn& p, Int i,
                     std::source_location w = std::source_location::current()) {
  if (aligned) p.require_aligned(w);
  return p[Index(i, w)];
}

inline Int4 wg_load4(bool aligned, const IntsIn& p, Int i,
                     std::source_location w = std::source_location::current()) {
  if (aligned) {
    p.require_aligned(w);
    if ((i & 3) != 0) fault("misaligned", i.raw(), "is no multiple of", 4, w);
  }
  return {p[Index(i, w)], p[Index(i + 1, w)], p[Index(i + 2, w)], p[Index(i + 3, w)]};
}

/// Which thread of the launch the body plays.
struct Geometry {
  int thread = 0, threads = 1, block_x = 0, block_y = 0, grid_y = 1;
};

}  // namespace warmgate::jit

#define WG_CONSTANTS(...)
#define WG_WITH(...)
#define WG_KERNEL void
#define WG_DEVICE
#define WG_INTS_IN IntsIn
#define WG_INTS_OUT IntsOut
#define WG_INTS_AT const IntsIn
#define WG_THREAD Int(geometry.thread)
#define WG_THREADS Int(geometry.threads)
#define WG_BLOCK_X Int(geometry.block_x)
#define WG_BLOCK_Y Int(geometry.block_y)
#define WG_GRID_Y Int(geometry.grid_y)
#define WG_CLASSIFIED(CLASS, value) wg_classified(CLASS, value)
#define WG_LOOKUP(ALIGNED, p, i) wg_lookup(ALIGNED, p, i)
#define WG_LOAD4(ALIGNED, p, i) wg_load4(ALIGNED, p, i)
