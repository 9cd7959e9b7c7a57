// Parts of the selection: ranks that order like the scores, a scan over a block, and the bin of a
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
  const uint32_t sum = lane < kThreads / 32 ? sums[lane] : 0;
  total = __reduce_add_sync(0xFFFFFFFFu, sum);
  return __reduce_add_sync(0xFFFFFFFFu, lane < warp ? sum : 0) + inclusive - value;
}

constexpr int kBins = 2048;
constexpr int kPasses = 3;
/// Digits of 11, 11 and 10 bits, the highest first.
__device__ __forceinline__ int shift_of(int pass) { return pass == 0 ? 21 : pass == 1 ? 10 : 0; }
__device__ __forceinline__ uint32_t digit_mask(int pass) { return pass == 2 ? 1023u : 2047u; }

struct Found {
  uint32_t bin, above, in_bin;  // counts of elements in higher bins and in this one
};

/// The score that ranks lowest of those with `bin` as their first digit, or a lower one; no NaN.
__device__ __forceinline__ float edge_of(uint32_t bin) {
  const uint32_t rank = bin << 21;
  if (rank <= 0x00800000u) return __uint_as_float(0xFF800000u);
  return __uint_as_float((rank >> 31) != 0 ? rank & 0x7FFFFFFFu : ~rank);
}

/// The bin with the `wanted`-th largest (1 first) of all counted; in_bin 0 if there are fewer. All
/// have counted before a barrier; ends with one. `bins` is aligned to 16 bytes; `found` and `sums`
/// are shared memory.
template <int kThreads>
__device__ __forceinline__ Found find_bin(const uint32_t* bins, uint32_t wanted, uint32_t* sums,
                                          Found* found) {
  constexpr int kEach = kBins / kThreads;  // bins a thread, the first one has the highest
  static_assert(kEach == 2 || kEach == 4);
  if (threadIdx.x == 0) *found = {0, 0, 0};
  const int low = kBins - (static_cast<int>(threadIdx.x) + 1) * kEach;
  uint32_t counts[kEach];
  if constexpr (kEach == 4) {
    const uint4 four = *reinterpret_cast<const uint4*>(bins + low);
    counts[0] = four.w, counts[1] = four.z, counts[2] = four.y, counts[3] = four.x;
  } else {
    const uint2 two = *reinterpret_cast<const uint2*>(bins + low);
    counts[0] = two.y, counts[1] = two.x;
  }
  uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) sum += counts[i];
  uint32_t total;
  uint32_t above = scan_block<kThreads>(sum, sums, total);
  if (above < wanted && above + sum >= wanted) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (above < wanted && above + counts[i] >= wanted) {
        *found = {static_cast<uint32_t>(low + kEach - 1 - i), above, counts[i]};
      }
      above += counts[i];
    }
  }
  __syncthreads();
  return *found;
}

}  // namespace warmgate::kernels::cuda::topk
