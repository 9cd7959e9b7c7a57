// Scores in fp32 for any format and number of heads. A block holds queries of one token in shared
// memory, kHeads at a time; a thread holds one key in registers and meets all heads in turn.
#include "kernels/cuda/formats.cuh"
#include "kernels/cuda/indexer/logits_paths.h"
#include "kernels/cuda/indexer/table.cuh"

namespace warmgate::kernels::cuda::logits {

namespace {

constexpr int kThreads = 128;  // keys at a time
constexpr int kKeysPerBlock = 1024;
constexpr int kHeads = 32;
constexpr int kDim = 128;

struct Params {
  int64_t tokens, heads, next_n;
  const uint8_t* q;
  const uint8_t* q_scales;
  const float* w;
  const uint8_t* values;
  const uint8_t* scales;
  cpu::Pages pages;
  cpu::BlockTable table;
  const int32_t* key_start;  // nullptr: 0
  const int32_t* key_end;
  float* logits;
  int64_t stride;
};

__device__ __forceinline__ float e2m1_to_float(uint32_t nibble) {
  const uint32_t magnitude = nibble & 7;
  const float value = magnitude < 2
                          ? 0.5f * magnitude
                          : __uint_as_float(((magnitude >> 1) + 126) << 23 | (magnitude & 1) << 22);
  return (nibble & 8) != 0 ? -value : value;
}

// Value i of a row, without (fp8) or with (mxfp4) its scale.
template <bool kFp8>
__device__ __forceinline__ float value_at(const uint8_t* values, const uint8_t* scales, int i) {
  if constexpr (kFp8) return e4m3_to_float(values[i]);
  const uint32_t pair = values[i / 2];
  return e2m1_to_float(i % 2 == 0 ? pair & 15 : pair >> 4) * ue8m0_to_float(scales[i / 32]);
}

template <bool kFp8>
__device__ __forceinline__ void read_key(const uint8_t* values, const uint8_t* scales,
                                         float (&key)[kDim]) {
  float scale = 1;
  if constexpr (kFp8) {
    const uint32_t bits =
        scales[0] | scales[1] << 8 | scales[2] << 16 | static_cast<uint32_t>(scales[3]) << 24;
    scale = __uint_as_float(bits);
  }
#pragma unroll
  for (int i = 0; i < kDim; ++i) key[i] = value_at<kFp8>(values, scales, i) * scale;
}

template <bool kFp8, bool kPaged>
__global__ void __launch_bounds__(kThreads) logits_general_kernel(const Params p) {
  __shared__ float4 queries[kHeads * kDim / 4];
  __shared__ float weights[kHeads];
  constexpr int kRowBytes = kFp8 ? 128 : 64;
  const int64_t token = blockIdx.x;
  const int64_t start = p.key_start != nullptr ? p.key_start[token] : 0;
  const int64_t first = max(start, static_cast<int64_t>(blockIdx.y) * kKeysPerBlock);
  const int64_t last = min(static_cast<int64_t>(p.key_end[token]),
                           (static_cast<int64_t>(blockIdx.y) + 1) * kKeysPerBlock);
  float* logits = p.logits + token * p.stride;
  for (int64_t tile = first; tile < last; tile += kThreads) {
    const int64_t j = tile + threadIdx.x;
    const bool valid = j < last;
    float key[kDim];
    if (valid) {
      if constexpr (kPaged) {
        const int64_t slot = slot_of(p.table, token / p.next_n, j);
        const uint8_t* page = p.pages.base + slot / p.pages.rows * p.pages.stride;
        const int64_t row = slot % p.pages.rows;
        read_key<kFp8>(page + row * kRowBytes, page + p.pages.rows * kRowBytes + row * 4, key);
      } else {
        read_key<kFp8>(p.values + j * kRowBytes, p.scales + j * 4, key);
      }
    }
    float sum = 0;
    for (int64_t head = 0; head < p.heads; head += kHeads) {
      const int heads = static_cast<int>(min(p.heads - head, int64_t{kHeads}));
      __syncthreads();
      for (int i = threadIdx.x; i < heads * kDim; i += kThreads) {
        const int64_t row = token * p.heads + head + i / kDim;
        reinterpret_cast<float*>(queries)[i] =
            value_at<kFp8>(p.q + row * kRowBytes, p.q_scales + row * 4, i % kDim);
      }
      if (threadIdx.x < heads) weights[threadIdx.x] = p.w[token * p.heads + head + threadIdx.x];
      __syncthreads();
      if (!valid) continue;
      for (int h = 0; h < heads; ++h) {
        float dot[4] = {};
#pragma unroll
        for (int i = 0; i < kDim / 4; ++i) {
          const float4 q = queries[h * kDim / 4 + i];
          dot[0] += q.x * key[4 * i];
          dot[1] += q.y * key[4 * i + 1];
          dot[2] += q.z * key[4 * i + 2];
          dot[3] += q.w * key[4 * i + 3];
        }
        const float d = (dot[0] + dot[2]) + (dot[1] + dot[3]);
        sum += (d < 0 ? 0.0f : d) * weights[h];  // NaN passes: a poisoned key shows
      }
    }
    if (valid) logits[j] = sum;
  }
}

template <bool kPaged>
void start(const Params& p, cpu::IndexFormat format, const Launch& launch) {
  if (p.tokens <= 0 || p.stride <= 0) return;
  const dim3 grid(static_cast<unsigned>(p.tokens),
                  static_cast<unsigned>((p.stride + kKeysPerBlock - 1) / kKeysPerBlock));
  if (format == cpu::IndexFormat::kFp8) {
    logits_general_kernel<true, kPaged><<<grid, kThreads, 0, launch.stream>>>(p);
  } else {
    logits_general_kernel<false, kPaged><<<grid, kThreads, 0, launch.stream>>>(p);
  }
  check_launch("logits_general");
}

}  // namespace

void run_general(const cpu::MqaLogitsPrefill& p, const Launch& launch) {
  start<false>({p.tokens,
                p.heads,
                1,
                p.q,
                p.q_scales,
                p.w,
                p.values,
                p.scales,
                {},
                {},
                p.key_start,
                p.key_end,
                p.logits,
                p.logits_stride},
               p.format, launch);
}

void run_general(const cpu::MqaLogitsPaged& p, const Launch& launch) {
  start<true>({p.tokens, p.heads, p.next_n, p.q, p.q_scales, p.w, nullptr, nullptr, p.pages,
               p.table, nullptr, p.context_lens, p.logits, p.logits_stride},
              p.format, launch);
}

}  // namespace warmgate::kernels::cuda::logits
