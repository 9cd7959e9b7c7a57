// The products of the Hopper decode kernel. Warpgroup 0 computes scores and their softmax and the
// channels 0..255 of the sums; warpgroup 1 the channels 256..511, with the weights that warpgroup 0
// leaves in shared memory.
#pragma once

#include <cuda_bf16.h>

#include "kernels/cuda/attention/sparse_decode_tile.cuh"

namespace warmgate::kernels::cuda::decode {

// 2^x; what is below 2^-126 is 0.
__device__ __forceinline__ float exp2_fast(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
__device__ __forceinline__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(both);
}

// q of the tile's heads into shared memory; zeros for heads that are not there. Consumers.
__device__ __forceinline__ void load_q(const DecodeParams& p, const Work& work, Shared& shared,
                                       int thread) {
  const uint16_t* q = p.q + work.row(p) * kDim;
#pragma unroll 4
  for (int i = thread; i < kHeads * kDim / 8; i += kConsumers) {
    const int head = i / 64, column = i % 64;
    copy_async_16(shared.q + column / 8 * kTileBytes + head * 128 + ((column ^ head) & 7) * 16,
                  head < work.heads ? q + head * kDim + column * 8 : q, head < work.heads);
  }
  copy_async_commit();
  copy_async_wait<0>();
  fence_proxy();
  named_sync(kConsumersMeet, kConsumers);
}

// Scores of heads × keys of one step: started, not awaited.
__device__ __forceinline__ void start_scores(float (&scores)[32], const Shared& shared, int stage) {
  const uint64_t q = k_major(shared.q), keys = k_major(shared.keys[stage]);
#pragma unroll
  for (int i = 0; i < kDim / 16; ++i) {
    const uint32_t at = i / 4 * kTileBytes + i % 4 * 32;
    wgmma_bf16(scores, advance(q, at), advance(keys, at), i > 0);
  }
  wgmma_commit();
}

// The two heads of a thread (rows g and g+8 of its warp's 16), its share of their sums of weights.
struct Softmax {
  float top[2] = {-kInfinity, -kInfinity};
  float total[2] = {};
};

// scores → bf16 weights as A of the next product; decay[2] of what was summed so far.
__device__ __forceinline__ void weigh(float (&scores)[32], uint64_t valid, float scale_log2,
                                      Softmax& softmax, float (&decay)[2],
                                      uint32_t (&weights)[4][4]) {
  if (valid != ~uint64_t{0}) {
    const uint64_t mine = valid >> (2 * (threadIdx.x % 4));
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const bool there = (mine >> (8 * j + c) & 1) != 0;
        scores[4 * j + c] = there ? scores[4 * j + c] : -kInfinity;
        scores[4 * j + 2 + c] = there ? scores[4 * j + 2 + c] : -kInfinity;
      }
    }
  }
  float reference[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float highest = fmaxf(scores[2 * r], scores[2 * r + 1]);
#pragma unroll
    for (int j = 1; j < 8; ++j)
      highest = fmaxf(highest, fmaxf(scores[4 * j + 2 * r], scores[4 * j + 2 * r + 1]));
    highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 1));
    highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 2));
    const float top = fmaxf(softmax.top[r], highest * scale_log2);
    reference[r] = top == -kInfinity ? 0.0F : top;  // no key yet: weights 0, not NaN
    decay[r] = exp2_fast(softmax.top[r] - reference[r]);
    softmax.top[r] = top;
    softmax.total[r] *= decay[r];
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float low = exp2_fast(scores[4 * j + 2 * r] * scale_log2 - reference[r]);
      const float high = exp2_fast(scores[4 * j + 2 * r + 1] * scale_log2 - reference[r]);
      const uint32_t both = pack(low, high);
      weights[j / 2][j % 2 * 2 + r] = both;
      // What is multiplied is what is summed: equal values have that value as their mean.
      softmax.total[r] += __uint_as_float(both << 16) + __uint_as_float(both & 0xFFFF0000u);
    }
  }
}

// Of a warpgroup's 256 channels, in two products of 128: one of 256 needs more registers than a
// thread of 512 may have at entry.
struct Sums {
  float low[64] = {}, high[64] = {};
  // Channel 8j + 2·(lane % 4) (+1) of the thread's head r.
  __device__ float2 pair(int j, int r) const {
    const float(&half)[64] = j < 16 ? low : high;
    return make_float2(half[4 * (j % 16) + 2 * r], half[4 * (j % 16) + 2 * r + 1]);
  }
};
__device__ __forceinline__ void hold(Sums& sums) {
  cuda::hold(sums.low);
  cuda::hold(sums.high);
}
// sums += a·values, or = where `add` is false. A: four registers or a descriptor.
template <class A>
__device__ __forceinline__ void add_product(Sums& sums, const A& a, uint64_t values, bool add) {
  wgmma_bf16<Transposed::kYes>(sums.low, a, values, add);
  wgmma_bf16<Transposed::kYes>(sums.high, a, advance(values, 2 * kTileBytes), add);
}

__device__ __forceinline__ void scale_sums(Sums& sums, const float (&decay)[2]) {
  if (__all_sync(~0u, decay[0] == 1.0F && decay[1] == 1.0F)) return;
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    sums.low[i] *= decay[i / 2 % 2];
    sums.high[i] *= decay[i / 2 % 2];
  }
}

// Warpgroup 0. Leaves tops and totals in shared memory.
__device__ __forceinline__ void consume_with_softmax(const DecodeParams& p, const Work& work,
                                                     Shared& shared, int thread, int before,
                                                     Sums& sums) {
  const int warp = thread / 32, lane = thread % 32;
  const int row = 16 * warp + lane / 4;  // and row + 8
  const float scale_log2 = p.scale * 1.4426950408889634F;
  Softmax softmax;
  for (int step = work.begin; step < work.end; ++step) {
    const int done = before + step - work.begin;
    const int stage = done % kStages;
    wait(&shared.full[stage], done / kStages & 1);
    float scores[32] = {};
    cuda::hold(scores);
    wgmma_fence();
    start_scores(scores, shared, stage);
    wgmma_wait<0>();
    cuda::hold(scores);
    float decay[2];
    uint32_t weights[4][4];
    weigh(scores, shared.valid[stage], scale_log2, softmax, decay, weights);
    if (step > work.begin) named_sync(kWeightsRead, kConsumers);
    if (lane % 4 == 0) {
      shared.decay[row] = decay[0];
      shared.decay[row + 8] = decay[1];
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int head = row + 8 * r;
        *reinterpret_cast<uint32_t*>(shared.weights + head * 128 + ((j ^ head) & 7) * 16 +
                                     lane % 4 * 4) = weights[j / 2][j % 2 * 2 + r];
      }
    }
    fence_proxy();
    named_arrive(kWeightsReady, kConsumers);
    if (step > work.begin) scale_sums(sums, decay);
    const uint64_t values = mn_major(shared.keys[stage], kTileBytes);
    hold(sums);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k)
      add_product(sums, weights[k], advance(values, k * 2048), k > 0 || step > work.begin);
    wgmma_commit();
    wgmma_wait<0>();
    hold(sums);
    if (lane == 0) arrive(&shared.empty[stage]);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float total = softmax.total[r];
    total += __shfl_xor_sync(~0u, total, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    if (lane % 4 == 0) {
      shared.top[row + 8 * r] = softmax.top[r];
      shared.total[row + 8 * r] = total;
    }
  }
}

// Warpgroup 1.
__device__ __forceinline__ void consume(const Work& work, Shared& shared, int thread, int before,
                                        Sums& sums) {
  const int lane = thread % 32;
  const int row = 16 * (thread / 32) + lane / 4;
  for (int step = work.begin; step < work.end; ++step) {
    const int done = before + step - work.begin;
    const int stage = done % kStages;
    wait(&shared.full[stage], done / kStages & 1);
    named_sync(kWeightsReady, kConsumers);
    const float decay[2] = {shared.decay[row], shared.decay[row + 8]};
    if (step > work.begin) scale_sums(sums, decay);
    const uint64_t weights = k_major(shared.weights);
    const uint64_t values = mn_major(shared.keys[stage] + 4 * kTileBytes, kTileBytes);
    hold(sums);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k)
      add_product(sums, advance(weights, k * 32), advance(values, k * 2048),
                  k > 0 || step > work.begin);
    wgmma_commit();
    wgmma_wait<0>();
    hold(sums);
    if (lane == 0) arrive(&shared.empty[stage]);
    if (step + 1 < work.end) named_arrive(kWeightsRead, kConsumers);
  }
}

}  // namespace warmgate::kernels::cuda::decode
