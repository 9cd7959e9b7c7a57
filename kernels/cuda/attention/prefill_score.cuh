// The part of the scoring warpgroup of the sm_90a prefill kernel (prefill_roles.cuh): S = Q·Kᵀ, the
// running softmax, weights and factors for the sums.
#pragma once

#include "kernels/cuda/attention/prefill_roles.cuh"

namespace warmgate::kernels::cuda::prefill {

constexpr int kAnnounce = 28;     // steps of a product before the previous block's weights are told
constexpr int kScoreBarrier = 1;  // named barrier of score's threads
/// The running maximum moves only when a score exceeds it by this many powers of two: until then
/// weights up to 2^8 do no harm, and sums need no rescaling.
constexpr float kSlack = 8;

/// The running softmax of one row of 64 scores; its 16 scores in this thread are d[4j+kUpper..+1].
struct Row {
  float top = -INFINITY, total = 0;  // total: of this thread's columns

  /// Scores → weights; returns the factor for what was summed before.
  template <int kUpper>
  __device__ __forceinline__ float weigh(float (&d)[32], float scale) {
    float most = d[kUpper];
#pragma unroll
    for (int j = 0; j < 8; ++j) most = fmaxf(most, fmaxf(d[4 * j + kUpper], d[4 * j + kUpper + 1]));
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
    float shrink = 1;
    if ((most - top) * scale > kSlack) {  // false for -inf - -inf
      shrink = power_of_two((top - most) * scale);
      top = most;
      total *= shrink;
    }
    const float offset = top == -INFINITY ? 0 : top * scale;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      d[4 * j + kUpper] = power_of_two(fmaf(d[4 * j + kUpper], scale, -offset));
      d[4 * j + kUpper + 1] = power_of_two(fmaf(d[4 * j + kUpper + 1], scale, -offset));
      total += d[4 * j + kUpper] + d[4 * j + kUpper + 1];
    }
    return shrink;
  }
  /// 1 / (Σ weights + the sink's); 0 where the output is zeros.
  __device__ __forceinline__ float finish(float sink, float scale) const {
    float all = total + __shfl_xor_sync(~0u, total, 1);
    all += __shfl_xor_sync(~0u, all, 2);
    if (all == 0 || sink == INFINITY) return 0;
    return 1 / (all + power_of_two(fmaf(sink, kLog2E, -top * scale)));
  }
};

__device__ __forceinline__ void score(const cpu::SparsePrefill& p, Shared& s, int items,
                                      int tiles) {
  const int thread = threadIdx.x % 128, lane = thread % 32, warp = thread / 32;
  const int row = 16 * warp + lane / 4;  // and row + 8
  // Fragment addresses: row 16w + l%16, 16-byte column l/16 of each 16 channels.
  const int fragment_row = 16 * warp + lane % 16;
  const uint32_t fragment = 128 * fragment_row, column = lane / 16, swizzle = fragment_row % 8;
  const float scale = p.scale * kLog2E;
  const uint64_t queries = k_major(s.queries);
  uint32_t q[kHeld][4];
  float d[32];
  Place<kSlots> slot;
  Place<kStages> stage;
  Item next = item_at(p, items, tiles, blockIdx.x);
  for (int index = blockIdx.x; index < items; index += gridDim.x) {
    const Item item = next;
    next = item_at(p, items, tiles, index + gridDim.x);
    if (item.length == 0) continue;
    wait(&s.full[slot.at], slot.parity);
    const uint32_t from = shared_address(s.slots[slot.at]) + fragment;
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      load_matrices(q[k], from + k / 4 * kColumnBytes + 16 * (((2 * (k % 4)) | column) ^ swizzle));
    }
    // Each warp its own 16 rows: the others may still be multiplying.
    const int own = 16 * 128 * warp + 16 * lane;
    const uint8_t* rest = s.slots[slot.at] + kHeld / 4 * kColumnBytes + own;
#pragma unroll
    for (int i = 0; i < (kSteps - kHeld) / 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int place = i * kColumnBytes + 512 * j;
        *reinterpret_cast<uint4*>(s.queries + own + place) =
            *reinterpret_cast<const uint4*>(rest + place);
      }
    }
    fence_proxy();
    named_sync(kScoreBarrier, 128);
    arrive(&s.empty[slot.at]);
    arrive(&s.empty[slot.at]);
    slot.next();
    Row a, b;
    // Weights that are there, but not announced yet: sums would compete with the next product,
    // which score has to wait for. They have the tensor cores to themselves during the softmax.
    bool owed = false;
    for (int at = 0; at < item.length; at += kRows) {
      if (owed && !is_over(&s.full[slot.at], slot.parity)) {
        arrive(&s.weighed[stage.at ^ 1]);
        owed = false;
      }
      wait(&s.full[slot.at], slot.parity);
      fence_proxy();  // what landed was written as by ordinary stores
      const uint64_t tile = k_major(s.slots[slot.at]);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < kHeld; ++k)
        wgmma_bf16(d, q[k], advance(tile, k / 4 * kColumnBytes + k % 4 * 32), k > 0);
#pragma unroll
      for (int k = kHeld; k < kSteps; ++k) {
        if (k == kAnnounce) wgmma_commit();
        wgmma_bf16(d, advance(queries, (k - kHeld) / 4 * kColumnBytes + k % 4 * 32),
                   advance(tile, k / 4 * kColumnBytes + k % 4 * 32), true);
      }
      wgmma_commit();
      const uint32_t low = s.keys[slot.at][0], high = s.keys[slot.at][1];
      wgmma_wait<1>();
      if (owed) arrive(&s.weighed[stage.at ^ 1]);
      owed = false;
      wgmma_wait<0>();
      hold(d);
      if ((low & high) != ~0u) {
#pragma unroll
        for (int i = 0; i < 32; ++i) {
          const int key = i / 4 * 8 + i % 2;  // + 2·(lane%4)
          const uint32_t bits = (key < 32 ? low : high) >> (2 * (lane % 4));
          if ((bits >> (key % 32) & 1) == 0) d[i] = -INFINITY;
        }
      }
      const float shrink_a = a.weigh<0>(d, scale), shrink_b = b.weigh<2>(d, scale);
      wait(&s.summed[stage.at], stage.parity ^ 1);
      const uint32_t to = shared_address(s.weights[stage.at]) + fragment;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        store_matrices(to + 16 * (((2 * k) | column) ^ swizzle), bf16_pair(d[8 * k], d[8 * k + 1]),
                       bf16_pair(d[8 * k + 2], d[8 * k + 3]), bf16_pair(d[8 * k + 4], d[8 * k + 5]),
                       bf16_pair(d[8 * k + 6], d[8 * k + 7]));
      }
      if (lane % 4 == 0) {
        s.shrink[stage.at][row] = shrink_a;
        s.shrink[stage.at][row + 8] = shrink_b;
      }
      if (at + kRows >= item.length) {
        const int head = kRows * item.tile + row, heads = static_cast<int>(p.heads);
        const float fa = a.finish(head < heads ? __ldg(p.sink + head) : 0, scale);
        const float fb = b.finish(head + 8 < heads ? __ldg(p.sink + head + 8) : 0, scale);
        if (lane % 4 == 0) s.finish[stage.at][row] = fa, s.finish[stage.at][row + 8] = fb;
      }
      fence_proxy();
      owed = at + kRows < item.length;
      if (!owed) arrive(&s.weighed[stage.at]);
      slot.next();
      stage.next();
    }
  }
}

}  // namespace warmgate::kernels::cuda::prefill
