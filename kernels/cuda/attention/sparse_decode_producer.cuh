// Fetching and dequantising keys for the Hopper decode kernel: 4 threads a row, a step ahead in
// registers.
#pragma once

#include <cuda_bf16.h>

#include "kernels/cuda/attention/sparse_decode_tile.cuh"
#include "kernels/cuda/formats.cuh"

namespace warmgate::kernels::cuda::decode {

/// Scale bytes up to this one are applied by one product in bf16 (below).
constexpr uint32_t kLargestFastScale = 134;

// Four e4m3 codes → bf16 values times 2^(byte-127), given `factor` = bf16 2^(byte-7) twice. A
// code's bits, sign apart, read as bf16 (exponent field 0eeee, mantissa mmm0000) are its value
// times 2^-120, subnormals too; so one product, rounded once, is what converting to fp32, scaling
// and rounding to bf16 gives. NaN codes come out wrong; `largest` collects what tells of them.
__device__ __forceinline__ uint2 dequantise_four(uint32_t codes, __nv_bfloat162 factor,
                                                 uint32_t& largest) {
  const uint32_t pairs[2] = {__byte_perm(codes, 0, 0x1404), __byte_perm(codes, 0, 0x3424)};
  uint32_t magnitudes[2], out[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    magnitudes[i] = (pairs[i] >> 4) & 0x07F007F0u;
    const uint32_t bits = (pairs[i] & 0x80008000u) | magnitudes[i];
    const __nv_bfloat162 value = __hmul2(reinterpret_cast<const __nv_bfloat162&>(bits), factor);
    out[i] = reinterpret_cast<const uint32_t&>(value);
  }
  largest = __vimax3_u16x2(largest, magnitudes[0], magnitudes[1]);
  return {out[0], out[1]};
}
__device__ __forceinline__ bool has_nan(uint32_t largest) {
  return (largest & 0xFFFFu) == 0x07F0u || largest >> 16 == 0x07F0u;
}
__device__ __forceinline__ bool large_scale(uint2 scales) {
  return (__vcmpgtu4(scales.x, 0x01010101u * kLargestFastScale) |
          __vcmpgtu4(scales.y & 0x00FFFFFFu, 0x01010101u * kLargestFastScale)) != 0;
}
__device__ __forceinline__ uint32_t scale_of(uint2 scales, int block) {
  return ((block < 4 ? scales.x : scales.y) >> (8 * (block % 4))) & 0xFFu;
}

__device__ __forceinline__ uint4 load_16(const uint8_t* from) {
  uint4 out;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
               : "l"(from));
  return out;
}

// 16 channels of block `block` of row `row`, `part` of 4: two 16-byte columns of the key tile.
__device__ __forceinline__ void store_channels(uint8_t* keys, int row, int block, int part,
                                               const uint32_t (&out)[8]) {
  uint8_t* at = keys + block * kTileBytes + row * 128;
  const int swizzle = row & 7;
  *reinterpret_cast<uint4*>(at + ((2 * part) ^ swizzle) * 16) =
      make_uint4(out[0], out[1], out[2], out[3]);
  *reinterpret_cast<uint4*>(at + ((2 * part + 1) ^ swizzle) * 16) =
      make_uint4(out[4], out[5], out[6], out[7]);
}

// The definition, for rows with NaN codes or scales beyond the fast form: rare, so small.
__device__ __forceinline__ void dequantise_exactly(const uint8_t* data, uint2 scales, uint8_t* keys,
                                                   int row, int part) {
#pragma unroll 1
  for (int block = 0; block < 7; ++block) {
    const float scale = ue8m0_to_float(scale_of(scales, block));
    uint8_t* at = keys + block * kTileBytes + row * 128;
#pragma unroll 1
    for (int i = 16 * part; i < 16 * part + 16; ++i) {
      const float value = e4m3_to_float(data[64 * block + i]) * scale;
      *reinterpret_cast<uint16_t*>(at + (((i / 8) ^ (row & 7)) * 16) + i % 8 * 2) = to_bf16(value);
    }
  }
}

// The row's data into the L2, by one thread.
__device__ __forceinline__ void prefetch_row(const KeyRow& row) {
  if (row.data == nullptr) return;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], 576;" ::"l"(row.data));
}

// `before`: steps that the block has done for earlier work.
__device__ __forceinline__ void produce(const DecodeParams& p, const Work& work, Shared& shared,
                                        int thread, int before) {
  const int row = thread / 4, part = thread % 4;
  // Indices are read before the lengths have come: right where lists are full, else read again.
  int slot = work.list.slot_if_full(p, work.full_begin * kKeys + row);
  int next_slot = work.list.slot_if_full(p, work.full_begin * kKeys + row + kKeys);
  const int first = work.begin * kKeys + row;  // this thread's key of the first step
  if (work.begin != work.full_begin || work.list.extra_count != p.extra_width) {
    slot = work.list.slot(first);
    next_slot = work.list.slot(first + kKeys);
  }
  if (first >= work.list.count) slot = -1;
  if (work.begin + 1 >= work.end || first + kKeys >= work.list.count) next_slot = -1;
  KeyRow key = work.list.row(p, first, slot);
  uint4 raw[7] = {};
  uint2 scales = {};
  if (key.data != nullptr) {
    scales = __ldg(reinterpret_cast<const uint2*>(key.scales));
#pragma unroll
    for (int block = 0; block < 7; ++block) raw[block] = load_16(key.data + block * 64 + part * 16);
  }
  for (int step = work.begin; step < work.end; ++step) {
    const int done = before + step - work.begin;
    const int stage = done % kStages;
    const uint32_t round = static_cast<uint32_t>(done) / kStages;
    const int i = step * kKeys + row;
    const bool valid = key.data != nullptr;
    const KeyRow next = work.list.row(p, i + kKeys, next_slot);
    next_slot = step + 2 < work.end ? work.list.slot(i + 2 * kKeys) : -1;
    uint2 next_scales = {};
    if (next.data != nullptr) {
      next_scales = __ldg(reinterpret_cast<const uint2*>(next.scales));
      if (part == 0) prefetch_row(next);
    }

    wait(&shared.empty[stage], (round & 1) ^ 1);
    uint8_t* keys = shared.keys[stage];
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // bf16 already; rows take turns so that banks differ
      const int column = part + 4 * (half ^ (row & 1));
      copy_async_16(keys + 7 * kTileBytes + row * 128 + (column ^ (row & 7)) * 16,
                    valid ? key.data + 448 + column * 16 : p.window_base, valid);
    }
    copy_async_commit();

    uint32_t largest = 0;
#pragma unroll
    for (int block = 0; block < 7; ++block) {
      const uint32_t bits = (scale_of(scales, block) + 120) << 7;
      const uint32_t twice = bits | bits << 16;
      const __nv_bfloat162 factor = reinterpret_cast<const __nv_bfloat162&>(twice);
      const uint32_t codes[4] = {raw[block].x, raw[block].y, raw[block].z, raw[block].w};
      uint32_t out[8];
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        const uint2 four = dequantise_four(codes[word], factor, largest);
        out[2 * word] = four.x, out[2 * word + 1] = four.y;
      }
      raw[block] = make_uint4(0, 0, 0, 0);
      if (next.data != nullptr) raw[block] = load_16(next.data + block * 64 + part * 16);
      store_channels(keys, row, block, part, out);
    }
    if (valid && (has_nan(largest) || large_scale(scales)))
      dequantise_exactly(key.data, scales, keys, row, part);

    const uint32_t lanes = __ballot_sync(~0u, valid && part == 0);  // bit 4r: row r of the warp's 8
    if (thread % 32 == 0) {
      uint32_t bits = 0;
#pragma unroll
      for (int r = 0; r < 8; ++r) bits |= (lanes >> (4 * r) & 1) << r;
      reinterpret_cast<uint8_t*>(&shared.valid[stage])[thread / 32] = static_cast<uint8_t>(bits);
    }
    copy_async_wait<0>();
    fence_proxy();
    arrive(&shared.full[stage]);
    key = next;
    scales = next_scales;
  }
}

}  // namespace warmgate::kernels::cuda::decode
