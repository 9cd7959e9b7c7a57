// Parts of the selection: ranks that order like the scores, a scan over a block, and the digit of a
// histogram in which the wanted rank lies.
#pragma once

#include <stdint.h>

namespace warmgate::kernels::cuda::topk {

/// Unsigned integers that order like the floats: -0 equals 0, NaN (1) is the least; 0 is for what
/// is no score at all.
__device__ __forceinline__ uint32_t rank_of(float value) {
  const uint32_t u = __float_as_uint(__fadd_rn(value, 0.0f));
  const uint32_t rank = (u >> 31) != 0 ? ~u : u | 0x80000000u;
  return value != value ? 1u : rank;
}

/// Sum over the threads before this one; `total` over all. All threads call it; `sums` holds one
/// value a warp and may be used again after another barrier.
template <int kThreads>
__device__ __forceinline__ uint32_t scan_block(uint32_t value, uint32_t* sums, uint32_t& total) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t inclusive = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_up_sync(0xFFFFFFFFu, inclusive, step);
    if (lane >= step) inclusive += other;
  }
  if (lane == 31) sums[warp] = inclusive;
  __syncthreads();
  uint32_t before = inclusive - value;
  total = 0;
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) {
    const uint32_t sum = sums[i];
    before += i < warp ? sum : 0;
    total += sum;
  }
  return before;
}

constexpr int kBins = 2048;
constexpr int kPasses = 3;
/// Digits of 11, 11 and 10 bits, the highest first.
__device__ __forceinline__ int shift_of(int pass) { return pass == 0 ? 21 : pass == 1 ? 10 : 0; }
__device__ __forceinline__ uint32_t digit_mask(int pass) { return pass == 2 ? 1023u : 2047u; }

struct Found {
  uint32_t bin, above, in_bin;  // counts of elements in higher bins and in this one
};

/// The bin with the `wanted`-th largest (1 first) of all counted. Ends with a barrier; `found` and
/// `sums` are shared memory.
template <int kThreads>
__device__ __forceinline__ Found find_bin(const uint32_t* bins, uint32_t wanted, uint32_t* sums,
                                          Found* found) {
  constexpr int kEach = kBins / kThreads;
  uint32_t counts[kEach], sum = 0;
  const int top = kBins - 1 - static_cast<int>(threadIdx.x) * kEach;  // descending
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    counts[i] = bins[top - i];
    sum += counts[i];
  }
  uint32_t total;
  uint32_t above = scan_block<kThreads>(sum, sums, total);
  if (above < wanted && above + sum >= wanted) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (above < wanted && above + counts[i] >= wanted) {
        *found = {static_cast<uint32_t>(top - i), above, counts[i]};
      }
      above += counts[i];
    }
  }
  __syncthreads();
  return *found;
}

}  // namespace warmgate::kernels::cuda::topk
