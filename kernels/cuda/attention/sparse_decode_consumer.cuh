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
                                       int thread, uint32_t parity) {
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
  arrive(&shared.q_there);
  wait(&shared.q_there, parity);
}

// Scores of heads × keys of one step: started, not awaited.
__device__ __forceinline__ void start_scores(float (&scores)[32], Shared& shared, int done) {
  const int stage = done % kStages;
  const uint64_t q = k_major(shared.q), keys = k_major(shared.keys[stage]);
  wait(&shared.full[stage], done / kStages & 1);
  cuda::hold(scores);
  wgmma_fence();
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

// 1 / (total + e^sink), both relative to `top` (base 2); 0 says zeros: no key, or a sink of +inf.
__device__ __forceinline__ float inverse_total(float sink, End end) {
  if (end.y == 0.0F || sink == kInfinity) return 0.0F;
  return 1.0F / (end.y + exp2f(sink * 1.4426950408889634F - end.x));
}
__device__ __forceinline__ float sink_of(const DecodeParams& p, const Work& work, int head) {
  return head < work.heads ? __ldg(p.sink + work.first_head + head) : 0.0F;
}

__device__ __forceinline__ void write_remote(End* shared, uint32_t rank, End value) {
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(cluster_address(shared, rank)),
               "f"(value.x), "f"(value.y)
               : "memory");
}

// Behind the last weights, warpgroup 0: the factors of the block's sums; in a cluster, what other
// blocks need to find theirs.
template <bool kCluster>
__device__ __forceinline__ void end_softmax(const Work& work, Shared& shared, const Parts& parts,
                                            int row, int lane, const Softmax& softmax,
                                            const float (&sinks)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float total = softmax.total[r];
    total += __shfl_xor_sync(~0u, total, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    const End end = make_float2(softmax.top[r], total);
    if constexpr (kCluster) {
#pragma unroll
      for (int i = 0; i < kMostInCluster; i += 4) {  // the lanes of a quad share the blocks
        const int rank = i + lane % 4;
        if (rank < parts.cluster) {
          write_remote(&shared.ends[work.rank][row + 8 * r], rank, end);
          arrive_at(&shared.ends_there, rank);
        }
      }
    } else if (lane % 4 == 0) {
      shared.factor[row + 8 * r] = inverse_total(sinks[r], end);
    }
  }
  __syncwarp();  // products follow
}

// Warpgroup 0.
template <bool kCluster>
__device__ __forceinline__ void consume_with_softmax(const DecodeParams& p, const Work& work,
                                                     Shared& shared, const Parts& parts, int thread,
                                                     int before, Sums& sums) {
  const int warp = thread / 32, lane = thread % 32;
  const int row = 16 * warp + lane / 4;  // and row + 8
  const float scale_log2 = p.scale * 1.4426950408889634F;
  float sinks[2] = {};
  if constexpr (!kCluster) {
    sinks[0] = sink_of(p, work, row), sinks[1] = sink_of(p, work, row + 8);
  }
  Softmax softmax;
  for (int step = work.begin; step < work.end; ++step) {
    const int done = before + step - work.begin;
    const int stage = done % kStages;
    float scores[32] = {};
    start_scores(scores, shared, done);
    wgmma_wait<0>();
    cuda::hold(scores);
    float decay[2];
    uint32_t weights[4][4];
    weigh(scores, shared.valid[stage], scale_log2, softmax, decay, weights);
    wait(&shared.summed, (done & 1) ^ 1);
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
    if (!kCluster && step + 1 == work.end)
      end_softmax<false>(work, shared, parts, row, lane, softmax, sinks);
    arrive(&shared.weighed);
    if (kCluster && step + 1 == work.end)
      end_softmax<true>(work, shared, parts, row, lane, softmax, sinks);
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
    arrive(&shared.empty[stage]);
  }
  if (kCluster && work.begin == work.end)
    end_softmax<true>(work, shared, parts, row, lane, softmax, sinks);
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
    wait(&shared.weighed, done & 1);
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
    arrive(&shared.empty[stage]);
    arrive(&shared.summed);
  }
}

}  // namespace warmgate::kernels::cuda::decode
