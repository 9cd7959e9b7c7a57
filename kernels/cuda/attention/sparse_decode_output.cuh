// From sums to the output of the Hopper decode kernel: of one block, or of a cluster whose blocks
// each saw a part of the keys.
#pragma once

#include "kernels/cuda/attention/sparse_decode_consumer.cuh"

namespace warmgate::kernels::cuda::decode {

/// Between the four lanes of a quad: lane c's word i becomes lane i's word c.
__device__ __forceinline__ void transpose_quad(uint32_t (&w)[4], int lane) {
  const bool odd = lane & 1, upper = lane & 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t got = __shfl_xor_sync(~0u, odd ? w[i] : w[i + 1], 1);
    w[i] = odd ? got : w[i], w[i + 1] = odd ? w[i + 1] : got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t got = __shfl_xor_sync(~0u, upper ? w[i] : w[i + 2], 2);
    w[i] = upper ? got : w[i], w[i + 2] = upper ? w[i + 2] : got;
  }
}

// The block saw all keys. Consumers, each its own sums: a quad writes 64 bytes of a row at once.
__device__ __forceinline__ void write_output(const DecodeParams& p, const Work& work,
                                             Shared& shared, int thread, const Sums& sums) {
  const int half = thread / 128, lane = thread % 32;
  const int row = 16 * (thread / 32 % 4) + lane / 4;
  const bool any = work.begin < work.end;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int head = row + 8 * r;
    const float factor = any ? shared.factor[head] : 0.0F;
    uint16_t* out = p.out + (work.row(p) + head) * kDim + 256 * half + 8 * (lane % 4);
#pragma unroll
    for (int j = 0; j < 32; j += 4) {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 sum = sums.pair(j + i, r);
        words[i] = pack(sum.x * factor, sum.y * factor);
        if (factor == 0.0F) words[i] = 0;  // not a product: sums may be infinite
      }
      transpose_quad(words, lane);
      if (head < work.heads) {
        *reinterpret_cast<uint4*>(out + 8 * j) = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
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
  for (int r = 0; r < 2; ++r) {
    const float factor = shared.factor[row + 8 * r];
#pragma unroll
    for (int j = 0; j < 32; ++j) {
      const int four = 64 * half + 2 * j + lane % 4 / 2;
      float2 sum = sums.pair(j, r);
      sum.x *= factor, sum.y *= factor;
      if (factor == 0.0F) sum = {};  // not a product: sums may be infinite
      *reinterpret_cast<float2*>(shared.keys[0] + sums_offset(row + 8 * r, four) + lane % 2 * 8) =
          sum;
    }
  }
}

// Producers, when all blocks of the cluster have sent their ends: the factors of this one's sums.
__device__ __forceinline__ void find_factors(const DecodeParams& p, const Work& work,
                                             Shared& shared, const Parts& parts, int thread) {
  if (thread >= kHeads) return;
  const float sink = parts.groups == 1 ? sink_of(p, work, thread) : 0.0F;
  float top = -kInfinity;
  for (int s = 0; s < parts.cluster; ++s) top = fmaxf(top, shared.ends[s][thread].x);
  const float reference = top == -kInfinity ? 0.0F : top;  // no key: weights 0, not NaN
  float total = 0;
  for (int s = 0; s < parts.cluster; ++s) {
    const End end = shared.ends[s][thread];
    total += exp2f(end.x - reference) * end.y;
  }
  const float inverse = parts.groups == 1 ? inverse_total(sink, make_float2(top, total)) : 1.0F;
  const float weight = exp2f(shared.ends[work.rank][thread].x - reference);
  shared.factor[thread] = inverse == 0.0F ? 0.0F : weight * inverse;
  if (parts.groups > 1 && work.rank == 0) {
    parts.tops[work.group * kHeads + thread] = top;
    parts.totals[work.group * kHeads + thread] = total;
  }
  arrive(&shared.factors);
}

__device__ __forceinline__ float4 read_remote_four(uint32_t address) {
  float4 out;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(out.x), "=f"(out.y), "=f"(out.z), "=f"(out.w)
               : "r"(address));
  return out;
}

// Called, not inlined: one barrier instruction for the three roles, as racecheck was seen to
// follow.
__device__ __noinline__ void cluster_meet() { cluster_sync(); }

// All threads of all blocks of the cluster, their sums in shared memory: each block writes a share
// of the output, or of the group's sums.
__device__ __forceinline__ void merge_cluster(const DecodeParams& p, const Place& work,
                                              Shared& shared, const Parts& parts, int thread) {
  __syncwarp();
  cluster_meet();
  uint16_t* out = p.out + work.row(p) * kDim;
  float* sums = parts.sums + static_cast<int64_t>(work.group) * kHeads * kDim;
  const int step = parts.cluster * kThreads;
  for (int i = work.rank * kThreads + thread; i < work.heads * kDim / 4; i += step) {
    const uint32_t offset = sums_offset(i / (kDim / 4), i % (kDim / 4));
    float4 sum = {};
#pragma unroll
    for (int first = 0; first < kMostInCluster; first += 8) {
      if (first > 0 && first >= parts.cluster) break;
      float4 read[8];  // all on their way before the first is used
#pragma unroll
      for (int s = 0; s < 8; ++s) {
        read[s] = {};
        if (first + s < parts.cluster)
          read[s] = read_remote_four(cluster_address(shared.keys[0] + offset, first + s));
      }
#pragma unroll
      for (int s = 0; s < 8; ++s) {
        sum.x += read[s].x, sum.y += read[s].y, sum.z += read[s].z, sum.w += read[s].w;
      }
    }
    if (parts.groups == 1) {
      reinterpret_cast<uint2*>(out)[i] = make_uint2(pack(sum.x, sum.y), pack(sum.z, sum.w));
    } else {
      reinterpret_cast<float4*>(sums)[i] = sum;
    }
  }
  __syncwarp();
  cluster_meet();  // nobody leaves while others read
}

}  // namespace warmgate::kernels::cuda::decode
