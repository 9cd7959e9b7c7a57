// Sparse prefill attention, a warp a head: lane l holds channels 256i + 8l .. +7 of the query and
// of the sum (16-byte loads). Keys come 32 at a time: their scores, then one step of the running
// softmax, then the sum. No tensor cores, no shared memory: this is what runs where the fast kernel
// cannot, and what it is compared with.
#include <cuda_bf16.h>

#include "kernels/cuda/attention/prefill_kernels.h"
#include "kernels/cuda/formats.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr int kWarps = 8;
constexpr int kEach = kPrefillDim / 32;  // channels a lane

__device__ __forceinline__ float lower(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float upper(uint32_t pair) {
  return __uint_as_float(pair & 0xFFFF0000u);
}
__device__ __forceinline__ void widen(uint4 words, float* out) {
  const uint32_t w[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) out[2 * i] = lower(w[i]), out[2 * i + 1] = upper(w[i]);
}
__device__ __forceinline__ void read_row(const uint16_t* row, int lane, float (&out)[kEach]) {
  const uint4* words = reinterpret_cast<const uint4*>(row);
  widen(__ldg(words + lane), out);
  widen(__ldg(words + 32 + lane), out + 8);
}
__device__ __forceinline__ float sum_of_warp(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(kAll, v, step);
  return v;
}
__device__ __forceinline__ float max_of_warp(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(kAll, v, step));
  return v;
}

__global__ void __launch_bounds__(32 * kWarps) general(const cpu::SparsePrefill p) {
  const int lane = threadIdx.x % 32;
  const int64_t token = blockIdx.x;
  const int64_t head = int64_t{blockIdx.y} * kWarps + threadIdx.x / 32;
  if (head >= p.heads) return;
  const int64_t at = (token * p.heads + head) * kPrefillDim;
  float q[kEach], sum[kEach] = {};
  read_row(p.q + at, lane, q);
  float top = -INFINITY, total = 0;
  const int length = prefill_length(p, p.lens[token]);
  const int32_t* list = p.indices + token * p.width;
  for (int first = 0; first < length; first += 32) {
    const int mine = first + lane < length ? list[first + lane] : -1;
    unsigned keys = __ballot_sync(kAll, prefill_counts(p, mine));
    if (keys == 0) continue;
    float score = -INFINITY;
    for (unsigned left = keys; left != 0; left &= left - 1) {
      const int j = __ffs(left) - 1;
      float key[kEach], product = 0;
      read_row(p.kv + int64_t{__shfl_sync(kAll, mine, j)} * kPrefillDim, lane, key);
#pragma unroll
      for (int c = 0; c < kEach; ++c) product += q[c] * key[c];
      product = sum_of_warp(product) * p.scale;
      if (lane == j) score = product;
    }
    const float next = fmaxf(top, max_of_warp(score));
    const float shrink = expf(top - next);  // 0 the first time
    const float weight = expf(score - next);
    total = total * shrink + sum_of_warp(weight);
    top = next;
#pragma unroll
    for (int c = 0; c < kEach; ++c) sum[c] *= shrink;
    for (unsigned left = keys; left != 0; left &= left - 1) {
      const int j = __ffs(left) - 1;
      float key[kEach];
      read_row(p.kv + int64_t{__shfl_sync(kAll, mine, j)} * kPrefillDim, lane, key);
      const float w = __shfl_sync(kAll, weight, j);
#pragma unroll
      for (int c = 0; c < kEach; ++c) sum[c] += w * key[c];
    }
  }
  const float sink = p.sink[head];
  const bool nothing = total == 0 || sink == INFINITY;
  const float denominator = total + expf(sink - top);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int c = 8 * half + 2 * i;
      const uint32_t low = to_bf16(sum[c] / denominator), high = to_bf16(sum[c + 1] / denominator);
      words[i] = nothing ? 0 : low | high << 16;
    }
    reinterpret_cast<uint4*>(p.out + at)[32 * half + lane] =
        make_uint4(words[0], words[1], words[2], words[3]);
  }
}

}  // namespace

void run_prefill_general(const cpu::SparsePrefill& p, const Launch& launch) {
  const dim3 grid(static_cast<unsigned>(p.tokens),
                  static_cast<unsigned>((p.heads + kWarps - 1) / kWarps));
  general<<<grid, 32 * kWarps, 0, launch.stream>>>(p);
  check_launch("sparse_prefill general");
}

}  // namespace warmgate::kernels::cuda
