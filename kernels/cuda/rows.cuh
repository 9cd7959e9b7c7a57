// Rows of 512 or 128 channels in the hands of one warp, eight channels a lane and 16 bytes an
// access: loading, rotating, quantising, and the fp8_ds_mla row of a page. To the bit as
// kernels/cpu: products and sums that kernels/cpu rounds one by one are rounded one by one here.
#pragma once

#include <stdint.h>

#include "kernels/cpu/pages.h"
#include "kernels/cuda/formats.cuh"

namespace warmgate::kernels::cuda {

constexpr unsigned kWholeWarp = 0xFFFFFFFFu;
constexpr uint32_t kFloor1e4 = 0x38D1B717u;   // bits of 1e-4f
constexpr uint32_t kFloor1e10 = 0x2EDBE6FFu;  // bits of 1e-10f

struct Eight {
  float x[8];
};

__device__ __forceinline__ Eight widen(uint4 in) {
  Eight out;
  const uint32_t words[4] = {in.x, in.y, in.z, in.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out.x[2 * i] = __uint_as_float(words[i] << 16);
    out.x[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000u);
  }
  return out;
}
__device__ __forceinline__ uint32_t narrow2(float first, float second) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
__device__ __forceinline__ uint4 narrow(const Eight& v) {
  return {narrow2(v.x[0], v.x[1]), narrow2(v.x[2], v.x[3]), narrow2(v.x[4], v.x[5]),
          narrow2(v.x[6], v.x[7])};
}

/// Bits of the largest magnitude; NaN does not count.
__device__ __forceinline__ uint32_t magnitude(const Eight& v) {
  uint32_t largest = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const uint32_t a = __float_as_uint(v.x[i]) & 0x7FFFFFFFu;
    largest = max(largest, a > 0x7F800000u ? 0u : a);
  }
  return largest;
}
/// The same of eight bf16 as they lie in memory, two an instruction.
__device__ __forceinline__ uint32_t magnitude_of(uint4 packed) {
  const uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
  __nv_bfloat162 largest = __habs2(*reinterpret_cast<const __nv_bfloat162*>(&words[0]));
#pragma unroll
  for (int i = 1; i < 4; ++i) {
    largest = __hmax2(largest, __habs2(*reinterpret_cast<const __nv_bfloat162*>(&words[i])));
  }
  // Of a number and NaN the maximum is the number; only two NaN are NaN.
  const float one = fmaxf(__low2float(largest), __high2float(largest));
  return __float_as_uint(fmaxf(one, 0.0f));
}
/// Over `lanes` neighbouring lanes, a power of two.
template <int lanes>
__device__ __forceinline__ uint32_t largest_of(uint32_t value) {
#pragma unroll
  for (int step = lanes / 2; step > 0; step /= 2)
    value = max(value, __shfl_xor_sync(kWholeWarp, value, step));
  return value;
}
template <int lanes>
__device__ __forceinline__ float sum_of(float value) {
#pragma unroll
  for (int step = lanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(kWholeWarp, value, step);
  return value;
}

/// scale_byte(amax, floor, 448) of kernels/cpu without its division: 448 = 1.75·2^8, so the power
/// rises where the mantissa is above 1.75.
__device__ __forceinline__ uint32_t e4m3_scale_byte(uint32_t amax, uint32_t floor) {
  const uint32_t bits = max(amax, floor);
  return bits >= 0x7F800000u ? 255u : ((bits + 0x1FFFFFu) >> 23) - 8u;
}
/// The same for e2m1 with its floor of 6·2^-126: 6 = 1.5·2^2.
__device__ __forceinline__ uint32_t e2m1_scale_byte(uint32_t amax) {
  const uint32_t bits = max(amax, 0x01C00000u);
  return bits >= 0x7F800000u ? 255u : ((bits + 0x3FFFFFu) >> 23) - 2u;
}
__device__ __forceinline__ float inverse_scale(uint32_t byte) {
  return __uint_as_float((254u - byte) << 23);
}
__device__ __forceinline__ uint2 quantise(const Eight& v, float inverse) {
  uint32_t pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) pairs[i] = to_e4m3x2(v.x[2 * i] * inverse, v.x[2 * i + 1] * inverse);
  return {pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16};
}
/// Of two e4m3 codes in the low 16 bits.
__device__ __forceinline__ float2 e4m3x2_to_floats(uint32_t pair) {
  const __half2_raw halves =
      __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(pair & 0xFFFFu), __NV_E4M3);
  return __half22float2(__half2(halves));
}

/// Four pairs with the cosines and sines of a table row; `back`: the sines change sign.
template <bool back>
__device__ __forceinline__ void rotate(Eight& v, const float4& cosines, const float4& sines) {
  const float c[4] = {cosines.x, cosines.y, cosines.z, cosines.w};
  const float s[4] = {sines.x, sines.y, sines.z, sines.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float e = v.x[2 * i], o = v.x[2 * i + 1];
    const float es = __fmul_rn(e, s[i]), os = __fmul_rn(o, s[i]);
    v.x[2 * i] = __fadd_rn(__fmul_rn(e, c[i]), back ? os : -os);
    v.x[2 * i + 1] = __fadd_rn(__fmul_rn(o, c[i]), back ? -es : es);
  }
}
/// The lane's part of a table row [64]: cosines and sines of pairs 4·part .. 4·part+3.
struct Angles {
  float4 cosines, sines;
};
__device__ __forceinline__ Angles angles_of(const float* row, int part) {
  return {__ldg(reinterpret_cast<const float4*>(row + 4 * part)),
          __ldg(reinterpret_cast<const float4*>(row + 32 + 4 * part))};
}

/// A row of 512 channels: lane l holds channels 8l.. and 256 + 8l..; the last 64 are lanes 24-31's.
constexpr int kFirstRopeLane = 24;
struct Row512 {
  Eight low, high;
};
__device__ __forceinline__ uint4 load16(const void* p) { return *static_cast<const uint4*>(p); }
__device__ __forceinline__ Row512 widen(uint4 low, uint4 high) { return {widen(low), widen(high)}; }

struct PageRow {
  uint8_t* data;
  uint8_t* scales;
};
/// Slots are below 2^32.
__device__ __forceinline__ PageRow ds_mla_row(const cpu::Pages& pages, int64_t slot) {
  const uint32_t rows = static_cast<uint32_t>(pages.rows), s = static_cast<uint32_t>(slot);
  const uint32_t index = s / rows, row = s - index * rows;
  uint8_t* page = pages.base + static_cast<int64_t>(index) * pages.stride;
  return {page + row * cpu::kRowDataBytes,
          page + rows * cpu::kRowDataBytes + row * cpu::kRowScaleBytes};
}
/// By a whole warp. The NoPE channels are already what bf16 can hold.
__device__ __forceinline__ void write_ds_mla(const Row512& v, const PageRow& row, int lane) {
  const uint32_t low = e4m3_scale_byte(largest_of<8>(magnitude(v.low)), kFloor1e4);
  const uint32_t high = e4m3_scale_byte(largest_of<8>(magnitude(v.high)), kFloor1e4);
  reinterpret_cast<uint2*>(row.data)[lane] = quantise(v.low, inverse_scale(low));
  if (lane < kFirstRopeLane) {
    reinterpret_cast<uint2*>(row.data + 256)[lane] = quantise(v.high, inverse_scale(high));
  } else {
    reinterpret_cast<uint4*>(row.data + cpu::kNopeDim)[lane - kFirstRopeLane] = narrow(v.high);
  }
  if (lane % 8 == 0) {
    row.scales[lane / 8] = static_cast<uint8_t>(low);
    row.scales[4 + lane / 8] = lane < kFirstRopeLane ? static_cast<uint8_t>(high) : 0;
  }
}

/// BlockTable::slot for rows and slots below 2^31.
__device__ __forceinline__ int64_t slot_of(const cpu::BlockTable& table, int64_t request,
                                           uint32_t row) {
  const uint32_t page_rows = static_cast<uint32_t>(table.page_rows);
  const uint32_t index = row / page_rows;
  const int32_t page = __ldg(table.entries + request * table.stride + index);
  return static_cast<int64_t>(page < 0 ? 0 : page) * page_rows + (row - index * page_rows);
}

}  // namespace warmgate::kernels::cuda
