// The part of the gathering warpgroup of the sm_90a prefill kernel (prefill_roles.cuh): queries and
// keys into the ring, 64 rows at a time.
#pragma once

#include "kernels/cuda/attention/prefill_roles.cuh"

namespace warmgate::kernels::cuda::prefill {

/// Entry `at` of a token's list; -1 where it does not count.
__device__ __forceinline__ int entry(const cpu::SparsePrefill& p, int token, int length, int at) {
  const int index = at < length ? __ldg(p.indices + token * p.width + at) : -1;
  return prefill_counts(p, index) ? index : -1;
}

/// A thread's share of a slot: of rows 8j + thread/16, four times 16 bytes, 256 apart. Its place
/// under the swizzle is the same in all of them, so that a row costs one address.
__device__ __forceinline__ void copy_row(uint32_t to, int j, const char* row, bool valid) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    copy_async_16(to + 1024 * j + 2 * i * kColumnBytes, row + 256 * i, valid);
}

__device__ __forceinline__ void gather(const cpu::SparsePrefill& p, Shared& s, int items,
                                       int tiles) {
  const int thread = threadIdx.x % 128, lane = thread % 32;
  const int row = thread / 16, part = thread % 16;
  const char* keys = reinterpret_cast<const char*>(p.kv) + 16 * part;
  const uint32_t first =
      shared_address(s.slots) + part / 8 * kColumnBytes + 128 * row + 16 * ((part % 8) ^ row);
  Place<kSlots> slot;
  // Lengths are read a tile ahead, entries a block ahead: nobody waits for them.
  Item next = item_at(p, items, tiles, blockIdx.x);
  int low = entry(p, next.token, next.length, lane);
  int high = entry(p, next.token, next.length, 32 + lane);
  for (int index = blockIdx.x; index < items; index += gridDim.x) {
    const Item item = next;
    next = item_at(p, items, tiles, index + gridDim.x);
    if (item.length == 0) {
      low = entry(p, next.token, next.length, lane);
      high = entry(p, next.token, next.length, 32 + lane);
      continue;
    }
    {
      const int64_t head = int64_t{kRows} * item.tile + row;
      const int rows = static_cast<int>(p.heads - head);
      const char* q = reinterpret_cast<const char*>(p.q) +
                      (int64_t{item.token} * p.heads + head) * kRowBytes + 16 * part;
      wait(&s.empty[slot.at], slot.parity ^ 1);
      const uint32_t to = first + slot.at * (kRows * kRowBytes);
#pragma unroll
      for (int j = 0; j < kRows / 8; ++j) copy_row(to, j, q + 8 * j * kRowBytes, 8 * j < rows);
      arrive_after_copies(&s.full[slot.at]);
      if (thread == 0) arrive(&s.full[slot.at]);
      slot.next();
    }
    for (int at = 0; at < item.length; at += kRows) {
      const bool last = at + kRows >= item.length;
      const int further = (last ? 0 : at + kRows) + lane;
      const int token = last ? next.token : item.token;
      const int length = last ? next.length : item.length;
      const int next_low = entry(p, token, length, further);
      const int next_high = entry(p, token, length, further + 32);
      wait(&s.empty[slot.at], slot.parity ^ 1);
      const uint32_t to = first + slot.at * (kRows * kRowBytes);
#pragma unroll
      for (int j = 0; j < kRows / 8; ++j) {
        // Of -1 the address is never used.
        const int key = __shfl_sync(~0u, j < 4 ? low : high, j % 4 * 8 + row);
        copy_row(to, j, keys + int64_t{key} * kRowBytes, key >= 0);
      }
      arrive_after_copies(&s.full[slot.at]);
      const uint32_t low_keys = __ballot_sync(~0u, low >= 0);
      const uint32_t high_keys = __ballot_sync(~0u, high >= 0);
      if (thread == 0) {
        s.keys[slot.at][0] = low_keys;
        s.keys[slot.at][1] = high_keys;
        arrive(&s.full[slot.at]);
      }
      low = next_low, high = next_high;
      slot.next();
    }
  }
}

}  // namespace warmgate::kernels::cuda::prefill
