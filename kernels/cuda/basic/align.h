// What host code of these kernels shares: checks of alignment, and numbers of blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/cpu/pages.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

inline bool aligned(const void* p, std::uintptr_t to = 16) {
  return reinterpret_cast<std::uintptr_t>(p) % to == 0;
}
inline bool aligned(const cpu::Pages& pages) {
  return aligned(pages.base) && pages.stride % 16 == 0;
}

inline Reason refuse(bool condition, const char* why) {
  return condition ? Reason(why) : std::nullopt;
}
/// The first reason there is.
template <class... Reasons>
Reason first_of(const Reasons&... reasons) {
  Reason out;
  ((out = out ? out : reasons), ...);
  return out;
}

constexpr std::int64_t blocks_for(std::int64_t items, std::int64_t per_block) {
  return (items + per_block - 1) / per_block;
}
inline int processors(const Launch& launch) {
  return launch.multiprocessors > 0 ? launch.multiprocessors : 132;
}
/// For loops that step by the whole grid: as many blocks as there is work for, at most `waves` a
/// multiprocessor.
inline unsigned grid_for(const Launch& launch, std::int64_t items, std::int64_t per_block,
                         int waves) {
  const std::int64_t most = static_cast<std::int64_t>(processors(launch)) * waves;
  return static_cast<unsigned>(std::clamp<std::int64_t>(blocks_for(items, per_block), 1, most));
}

}  // namespace warmgate::kernels::cuda
