// From sums to the output of the Hopper decode kernel: of one block, or of a cluster whose blocks
// each saw a part of the keys.
#pragma once

#include "kernels/cuda/attention/sparse_decode_consumer.cuh"

namespace warmgate::kernels::cuda::decode {

// 1 / (total + e^sink), both relative to `top` (base 2); 0 says zeros: no key, or a sink of +inf.
__device__ __forceinline__ float inverse_total(const DecodeParams& p, const Work& work, int head,
                                               float top, float total) {
  const float sink = head < work.heads ? __ldg(p.sink + work.first_head + head) : 0.0F;
  if (total == 0.0F || sink == kInfinity) return 0.0F;
  return 1.0F / (total + exp2f(sink * 1.4426950408889634F - top));
}

// The block saw all keys. Consumers, after both warpgroups are done; through q's shared memory, so
// that rows leave in whole sectors.
__device__ __forceinline__ void write_output(const DecodeParams& p, const Work& work,
                                             Shared& shared, int thread, const Sums& sums) {
  const int half = thread / 128, lane = thread % 32;
  const int row = 16 * (thread / 32 % 4) + lane / 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int head = row + 8 * r;
    const float inverse = inverse_total(p, work, head, shared.top[head], shared.total[head]);
    const bool zero = inverse == 0.0F;  // not a product: sums may be infinite
    uint8_t* at = shared.q + head * 1024 + lane % 4 * 4;
#pragma unroll
    for (int j = 0; j < 32; ++j) {
      const float2 sum = sums.pair(j, r);
      const uint32_t both = pack(sum.x * inverse, sum.y * inverse);
      *reinterpret_cast<uint32_t*>(at + ((32 * half + j) ^ (head & 7)) * 16) = zero ? 0 : both;
    }
  }
  named_sync(kConsumersMeet, kConsumers);
  uint16_t* out = p.out + work.row(p) * kDim;
#pragma unroll 4
  for (int i = thread; i < work.heads * 64; i += kConsumers) {
    const int head = i / 64, column = i % 64;
    reinterpret_cast<uint4*>(out)[i] =
        *reinterpret_cast<const uint4*>(shared.q + head * 1024 + (column ^ (head & 7)) * 16);
  }
}

// Four channels of a head in the fp32 sums that lie where the keys lay.
__device__ __forceinline__ uint32_t sums_offset(int head, int four) {
  return static_cast<uint32_t>(head * 2048 + (four ^ (head % 4 * 2)) * 16);
}
__device__ __forceinline__ void leave_sums(Shared& shared, int thread, const Sums& sums) {
  const int half = thread / 128, lane = thread % 32;
  const int row = 16 * (thread / 32 % 4) + lane / 4;
#pragma unroll
  for (int j = 0; j < 32; ++j) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int four = 64 * half + 2 * j + lane % 4 / 2;
      *reinterpret_cast<float2*>(shared.keys[0] + sums_offset(row + 8 * r, four) + lane % 2 * 8) =
          sums.pair(j, r);
    }
  }
}

__device__ __forceinline__ float read_remote(const float* shared, uint32_t rank) {
  float out = 0;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(out) : "r"(cluster_address(shared, rank)));
  return out;
}
__device__ __forceinline__ float4 read_remote_four(uint32_t address) {
  float4 out;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(out.x), "=f"(out.y), "=f"(out.z), "=f"(out.w)
               : "r"(address));
  return out;
}

// All threads of all blocks of the cluster, when their sums, tops and totals are in shared memory:
// each block writes a share of the output, or of the group's sums.
__device__ __forceinline__ void merge_cluster(const DecodeParams& p, const Work& work,
                                              Shared& shared, const Parts& parts, int thread) {
  const bool whole = parts.groups == 1;
  static_assert(kMostInCluster * kHeads == kThreads, "a thread a block and head");
  const int head_of = thread % kHeads, rank_of = thread / kHeads;
  cluster_sync();
  float top = -kInfinity, total = 0;
  if (rank_of < parts.cluster) {
    top = read_remote(&shared.top[head_of], rank_of);
    total = read_remote(&shared.total[head_of], rank_of);
  }
  shared.tops[rank_of][head_of] = top;
  named_sync(kAllMeet, kThreads);
  float highest = -kInfinity;
#pragma unroll
  for (int s = 0; s < kMostInCluster; ++s) highest = fmaxf(highest, shared.tops[s][head_of]);
  // A block without keys has weight 0 and total 0.
  const float weight = exp2f(top - (highest == -kInfinity ? 0.0F : highest));
  shared.factor[rank_of][head_of] = weight * total;
  named_sync(kAllMeet, kThreads);
  total = 0;
#pragma unroll
  for (int s = 0; s < kMostInCluster; ++s) total += shared.factor[s][head_of];
  named_sync(kAllMeet, kThreads);
  const float inverse = whole ? inverse_total(p, work, head_of, highest, total) : 1.0F;
  shared.factor[rank_of][head_of] = weight * inverse;
  if (!whole && work.rank == 0 && thread < kHeads) {
    parts.tops[work.group * kHeads + thread] = highest;
    parts.totals[work.group * kHeads + thread] = total;
  }
  named_sync(kAllMeet, kThreads);
  uint16_t* out = p.out + work.row(p) * kDim;
  float* sums = parts.sums + static_cast<int64_t>(work.group) * kHeads * kDim;
  const int step = parts.cluster * kThreads;
  for (int i = work.rank * kThreads + thread; i < work.heads * kDim / 4; i += step) {
    const int head = i / (kDim / 4);
    const uint32_t offset = sums_offset(head, i % (kDim / 4));
    float4 read[kMostInCluster];  // all on their way before the first is used
#pragma unroll
    for (int s = 0; s < kMostInCluster; ++s) {
      read[s] = {};
      // A factor of 0: nothing there, or nothing to say. (It may be NaN beyond the cluster too.)
      if (s < parts.cluster && shared.factor[s][head] != 0.0F)
        read[s] = read_remote_four(cluster_address(shared.keys[0] + offset, s));
    }
    float4 sum = {};
#pragma unroll
    for (int s = 0; s < kMostInCluster; ++s) {
      const float factor = shared.factor[s][head];
      sum.x += read[s].x * factor, sum.y += read[s].y * factor;
      sum.z += read[s].z * factor, sum.w += read[s].w * factor;
    }
    if (whole) {
      reinterpret_cast<uint2*>(out)[i] = make_uint2(pack(sum.x, sum.y), pack(sum.z, sum.w));
    } else {
      reinterpret_cast<float4*>(sums)[i] = sum;
    }
  }
  cluster_sync();  // nobody leaves while others read
}

}  // namespace warmgate::kernels::cuda::decode
