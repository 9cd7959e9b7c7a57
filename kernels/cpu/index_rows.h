// One indexer row to and from floats, for the loops that inline it.
#pragma once

#include <cstring>

#include "kernels/cpu/indexer.h"
#include "kernels/cpu/quantise.h"

namespace warmgate::kernels::cpu {

constexpr std::int64_t kIndexScaleBytes = 4;
constexpr float kE2m1Floor = 6.0F * 0x1p-126F;

struct IndexRow {
  std::uint8_t* values;
  std::uint8_t* scale;
};
WG_CPU_INLINE IndexRow index_row(IndexFormat format, const Pages& pages, std::int64_t slot) {
  const std::int64_t bytes = index_value_bytes(format);
  std::uint8_t* page = pages.base + slot / pages.rows * pages.stride;
  const std::int64_t row = slot % pages.rows;
  return {page + row * bytes, page + pages.rows * bytes + row * kIndexScaleBytes};
}

WG_CPU_INLINE void read_index_row(IndexFormat format, const std::uint8_t* values,
                                  const std::uint8_t* scale, float* out) {
  if (format == IndexFormat::kFp8) {
    float s = 0;
    std::memcpy(&s, scale, sizeof s);
    for (std::int64_t i = 0; i < kIndexDim; ++i) out[i] = e4m3_to_float(values[i]) * s;
    return;
  }
  for (std::int64_t i = 0; i < kIndexDim; i += 2) {
    const float s = ue8m0_to_float(scale[i / kMxRun]);
    const Nibbles pair = values[i / 2];
    out[i] = e2m1_to_float(pair) * s;
    out[i + 1] = e2m1_to_float(static_cast<std::uint8_t>(pair >> 4)) * s;
  }
}

WG_CPU_INLINE void write_mxfp4(const float* x, std::int64_t count, std::uint8_t* values,
                               std::uint8_t* scale) {
  for (std::int64_t run = 0; run < count / kMxRun; ++run) {
    const float* in = x + run * kMxRun;
    const Ue8m0 byte = scale_byte(largest_magnitude(in, kMxRun), kE2m1Floor, kE2m1Max);
    const float inverse = inverse_scale(byte);
    for (std::int64_t i = 0; i < kMxRun; i += 2) {
      values[(run * kMxRun + i) / 2] =
          static_cast<Nibbles>(to_e2m1(in[i] * inverse) | to_e2m1(in[i + 1] * inverse) << 4);
    }
    scale[run] = byte;
  }
}

WG_CPU_INLINE void write_index_row(IndexFormat format, const float* x, std::uint8_t* values,
                                   std::uint8_t* scale) {
  if (format == IndexFormat::kMxfp4) return write_mxfp4(x, kIndexDim, values, scale);
  const Ue8m0 byte = scale_byte(largest_magnitude(x, kIndexDim), 1e-4F, kE4m3Max);
  quantise_e4m3(x, kIndexDim, byte, values);
  const float s = ue8m0_to_float(byte);
  std::memcpy(scale, &s, sizeof s);
}

}  // namespace warmgate::kernels::cpu
