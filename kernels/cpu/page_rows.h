// One fp8_ds_mla row to and from floats, for the loops that inline it.
#pragma once

#include <cstring>

#include "kernels/cpu/pages.h"
#include "kernels/cpu/quantise.h"

namespace warmgate::kernels::cpu {

constexpr std::int64_t kBlockDim = 64;  // NoPE channels that share a scale
constexpr std::int64_t kNopeBlocks = kNopeDim / kBlockDim;

struct PageRow {
  std::uint8_t* data;
  std::uint8_t* scales;
};
WG_CPU_INLINE PageRow ds_mla_row(const Pages& pages, std::int64_t slot) {
  std::uint8_t* page = pages.base + slot / pages.rows * pages.stride;
  const std::int64_t row = slot % pages.rows;
  return {page + row * kRowDataBytes, page + pages.rows * kRowDataBytes + row * kRowScaleBytes};
}

WG_CPU_INLINE void read_ds_mla(const PageRow& row, float* out) {
  for (std::int64_t b = 0; b < kNopeBlocks; ++b) {
    const float scale = ue8m0_to_float(row.scales[b]);
    const std::uint8_t* in = row.data + b * kBlockDim;
    // The rounding changes nothing while the scale is in bf16's range; it is what readers see.
    for (std::int64_t i = 0; i < kBlockDim; ++i) {
      out[b * kBlockDim + i] = round_to_bf16(e4m3_to_float(in[i]) * scale);
    }
  }
  Bf16 rope[kHeadDim - kNopeDim];
  std::memcpy(rope, row.data + kNopeDim, sizeof rope);
  for (std::int64_t i = kNopeDim; i < kHeadDim; ++i) out[i] = to_float(rope[i - kNopeDim]);
}

WG_CPU_INLINE void write_ds_mla(const float* channels, const PageRow& row) {
  for (std::int64_t b = 0; b < kNopeBlocks; ++b) {
    const float* in = channels + b * kBlockDim;
    const Ue8m0 byte = scale_byte(largest_magnitude(in, kBlockDim), 1e-4F, kE4m3Max);
    quantise_e4m3(in, kBlockDim, byte, row.data + b * kBlockDim);
    row.scales[b] = byte;
  }
  row.scales[kNopeBlocks] = 0;
  Bf16 rope[kHeadDim - kNopeDim];
  for (std::int64_t i = kNopeDim; i < kHeadDim; ++i) rope[i - kNopeDim] = to_bf16(channels[i]);
  std::memcpy(row.data + kNopeDim, rope, sizeof rope);
}

}  // namespace warmgate::kernels::cpu
