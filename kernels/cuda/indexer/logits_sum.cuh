// From products to scores, in registers: ReLU, weights, the sum over 64 heads.
// Accumulators of thread (g = lane/4, c = lane%4): key rows g and g+8 of the warp's 16, of each
// query the heads 8j+2c and 8j+2c+1. Sixteen heads are summed in the thread, the rest over the four
// lanes of a row; on the way rows and queries are dealt out to those lanes, so that each shuffle
// carries a value that its sender is done with.
#pragma once

#include <stdint.h>

namespace warmgate::kernels::cuda::logits {

/// NaN passes, so that a poisoned key shows.
__device__ __forceinline__ float relu(float x) {
  float out;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(out) : "f"(x));
  return out;
}

/// Scores a thread ends up with: of key row g + 8·(c&1), of queries first_query()..+kMine-1.
template <int kQueries>
inline constexpr int kMine = kQueries > 1 ? kQueries / 2 : 1;

template <int kQueries>
__device__ __forceinline__ void sum_heads(const float (&d)[32 * kQueries],
                                          const float (&w)[16 * kQueries],
                                          float (&out)[kMine<kQueries>]) {
  const int c = threadIdx.x % 4;
  float sums[kQueries][2];
#pragma unroll
  for (int j = 0; j < 16; ++j) {
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const float x = relu(d[(q * 8 + j / 2) * 4 + row * 2 + j % 2]);
        sums[q][row] = j == 0 ? x * w[q * 16] : fmaf(x, w[q * 16 + j], sums[q][row]);
      }
    }
  }
  float rows[kQueries];
#pragma unroll
  for (int q = 0; q < kQueries; ++q) {
    const float keep = (c & 1) != 0 ? sums[q][1] : sums[q][0];
    const float give = (c & 1) != 0 ? sums[q][0] : sums[q][1];
    rows[q] = keep + __shfl_xor_sync(0xFFFFFFFFu, give, 1);
  }
  if constexpr (kQueries == 1) {
    out[0] = rows[0] + __shfl_xor_sync(0xFFFFFFFFu, rows[0], 2);
  } else {
#pragma unroll
    for (int i = 0; i < kQueries / 2; ++i) {
      const float keep = (c & 2) != 0 ? rows[kQueries / 2 + i] : rows[i];
      const float give = (c & 2) != 0 ? rows[i] : rows[kQueries / 2 + i];
      out[i] = keep + __shfl_xor_sync(0xFFFFFFFFu, give, 2);
    }
  }
}

/// The weights that belong to a thread's accumulators; queries beyond `count` weigh nothing.
template <int kQueries>
__device__ __forceinline__ void load_weights(const float* w, int count,
                                             float (&out)[16 * kQueries]) {
  const int c = threadIdx.x % 4;
#pragma unroll
  for (int q = 0; q < kQueries; ++q) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float2 pair = {0, 0};
      if (q < count) pair = *reinterpret_cast<const float2*>(w + q * 64 + 8 * j + 2 * c);
      out[q * 16 + 2 * j] = pair.x;
      out[q * 16 + 2 * j + 1] = pair.y;
    }
  }
}

}  // namespace warmgate::kernels::cuda::logits
