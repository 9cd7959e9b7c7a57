// The part of the two summing warpgroups of the sm_90a prefill kernel (prefill_roles.cuh).
#pragma once

#include "kernels/cuda/attention/prefill_roles.cuh"

namespace warmgate::kernels::cuda::prefill {

/// Between the four lanes of a quad: lane c's word i becomes lane i's word c.
__device__ __forceinline__ void transpose_quad(uint32_t (&w)[4], int lane) {
  const bool odd = lane & 1, upper = lane & 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t got = __shfl_xor_sync(~0u, odd ? w[i] : w[i + 1], 1);
    if (odd) {
      w[i] = got;
    } else {
      w[i + 1] = got;
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t got = __shfl_xor_sync(~0u, upper ? w[i] : w[i + 2], 2);
    if (upper) {
      w[i] = got;
    } else {
      w[i + 2] = got;
    }
  }
}

/// Sums of rows `row` and row + 8, 256 channels, to `out` (row's first of these channels). A quad
/// writes 64 bytes a row at once.
__device__ __forceinline__ void write_sums(const float (&sums)[2][64], float factor_a,
                                           float factor_b, uint16_t* out, int lane, bool has_a,
                                           bool has_b) {
  uint16_t* to = out + 8 * (lane % 4);
#pragma unroll
  for (int i = 0; i < 128; i += 16) {
    const float* d = sums[i / 64] + i % 64;
    uint32_t a[4], b[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      a[j] = bf16_pair(d[4 * j] * factor_a, d[4 * j + 1] * factor_a);
      b[j] = bf16_pair(d[4 * j + 2] * factor_b, d[4 * j + 3] * factor_b);
    }
    transpose_quad(a, lane);
    transpose_quad(b, lane);
    if (has_a) __stcs(reinterpret_cast<uint4*>(to + 2 * i), make_uint4(a[0], a[1], a[2], a[3]));
    if (has_b) {
      __stcs(reinterpret_cast<uint4*>(to + 2 * i + 8 * kPrefillDim),
             make_uint4(b[0], b[1], b[2], b[3]));
    }
  }
}

__device__ __forceinline__ void write_zeros(uint16_t* out, int lane, bool has_a, bool has_b) {
  uint16_t* to = out + 8 * (lane % 4);
#pragma unroll
  for (int i = 0; i < 256; i += 32) {
    if (has_a) __stcs(reinterpret_cast<uint4*>(to + i), uint4{});
    if (has_b) __stcs(reinterpret_cast<uint4*>(to + i + 8 * kPrefillDim), uint4{});
  }
}

__device__ __forceinline__ void sum(const cpu::SparsePrefill& p, Shared& s, int half, int items,
                                    int tiles) {
  const int thread = threadIdx.x % 128, lane = thread % 32;
  const int row = thread / 32 * 16 + lane / 4;  // and row + 8
  float d[2][64];                               // 128 channels each
  Place<kSlots> slot;
  Place<kStages> stage;
  Item next = item_at(p, items, tiles, blockIdx.x);
  for (int index = blockIdx.x; index < items; index += gridDim.x) {
    const Item item = next;
    next = item_at(p, items, tiles, index + gridDim.x);
    const int head = kRows * item.tile + row, heads = static_cast<int>(p.heads);
    uint16_t* out = p.out + (int64_t{item.token} * heads + head) * kPrefillDim + 256 * half;
    if (item.length == 0) {
      write_zeros(out, lane, head < heads, head + 8 < heads);
      continue;
    }
    slot.next();  // the queries
    float factor_a = 0, factor_b = 0;
    for (int at = 0; at < item.length; at += kRows) {
      wait(&s.weighed[stage.at], stage.parity);
      const float shrink_a = s.shrink[stage.at][row], shrink_b = s.shrink[stage.at][row + 8];
      if (at > 0 && __any_sync(~0u, shrink_a != 1 || shrink_b != 1)) {
#pragma unroll
        for (int i = 0; i < 128; i += 4) {
          float* v = d[i / 64] + i % 64;
          v[0] *= shrink_a, v[1] *= shrink_a, v[2] *= shrink_b, v[3] *= shrink_b;
        }
      }
      hold(d[0]);
      hold(d[1]);
      const uint64_t weights = k_major(s.weights[stage.at]);
      const uint64_t values = mn_major(s.slots[slot.at] + 4 * half * kColumnBytes, kColumnBytes);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < kRows / 16; ++k) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          wgmma_bf16<Transposed::kYes>(d[n], advance(weights, 32 * k),
                                       advance(values, 2048 * k + 2 * n * kColumnBytes),
                                       at > 0 || k > 0);
        }
      }
      wgmma_commit();
      factor_a = s.finish[stage.at][row], factor_b = s.finish[stage.at][row + 8];
      wgmma_wait<0>();
      hold(d[0]);
      hold(d[1]);
      arrive(&s.empty[slot.at]);
      arrive(&s.summed[stage.at]);
      slot.next();
      stage.next();
    }
    write_sums(d, factor_a, factor_b, out, lane, head < heads, head + 8 < heads);
  }
}

}  // namespace warmgate::kernels::cuda::prefill
