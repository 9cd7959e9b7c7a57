// Sparse decode without tensor cores: the plain form that other kernels are compared with, and what
// runs where they cannot. A block takes 16 heads of a token, 16 keys at a time: dequantised into
// shared memory, a score a thread, an online softmax, two channels a thread.
#include <math_constants.h>

#include "kernels/cuda/attention/sparse_decode_keys.cuh"
#include "kernels/cuda/attention/sparse_decode_paths.h"
#include "kernels/cuda/formats.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kHeads = 16, kKeys = 16, kThreads = 256, kDim = 512;
constexpr int kPitch = kDim + 2;  // keys of a column lie in different banks

struct Shared {
  uint16_t keys[kKeys][kPitch];
  uint16_t q[kHeads][kDim];
  float weights[kHeads][kKeys];
  float decay[kHeads];
  float inverse[kHeads];
  int valid[kKeys];
};

// Thread `part` of 16 of a row: chunks part, part+16, … of 16 bytes.
__device__ void dequantise(const KeyRow& row, int part, uint16_t* out) {
  for (int chunk = part; chunk < 28; chunk += 16) {
    const float scale = row.data == nullptr ? 0.0F : ue8m0_to_float(row.scales[chunk / 4]);
    for (int i = chunk * 16; i < chunk * 16 + 16; ++i)
      out[i] = row.data == nullptr ? uint16_t{0} : to_bf16(e4m3_to_float(row.data[i]) * scale);
  }
  for (int i = 448 + part * 4; i < 448 + part * 4 + 4; ++i) {
    const uint8_t* rope = row.data + 448 + (i - 448) * 2;
    out[i] = row.data == nullptr ? uint16_t{0} : *reinterpret_cast<const uint16_t*>(rope);
  }
}

__global__ void __launch_bounds__(kThreads) general_kernel(const __grid_constant__ DecodeParams p) {
  __shared__ Shared shared;
  const int64_t token = blockIdx.x;
  const int first_head = blockIdx.y * kHeads;
  const int thread = threadIdx.x;
  const int head = thread / kKeys, key = thread % kKeys;  // of this thread's score
  const KeyList list(p, token);

  for (int i = thread; i < kHeads * kDim; i += kThreads) {
    const int h = first_head + i / kDim;
    shared.q[i / kDim][i % kDim] =
        h < p.heads ? p.q[(token * p.heads + h) * kDim + i % kDim] : uint16_t{0};
  }
  float top = -CUDART_INF_F, total = 0;
  float sums[kHeads][2] = {};
  for (int begin = 0; begin < list.count; begin += kKeys) {
    __syncthreads();  // q is there; the last keys are no longer needed
    const int i = begin + head;
    const KeyRow row = list.row(p, i, list.slot(i));
    dequantise(row, key, shared.keys[head]);
    if (key == 0) shared.valid[head] = row.data != nullptr;
    __syncthreads();

    float score = 0;
    for (int c = 0; c < kDim; ++c)
      score += bf16_to_float(shared.q[head][c]) * bf16_to_float(shared.keys[key][c]);
    score = shared.valid[key] ? score * p.scale : -CUDART_INF_F;
    float highest = fmaxf(top, score);
    for (int step = kKeys / 2; step > 0; step /= 2)
      highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, step));
    const float reference = highest == -CUDART_INF_F ? 0.0F : highest;
    const float decay = expf(top - reference);
    const float weight = expf(score - reference);
    float sum = weight;
    for (int step = kKeys / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    total = total * decay + sum;
    top = highest;
    shared.weights[head][key] = weight;
    shared.decay[head] = decay;
    __syncthreads();

    for (int h = 0; h < kHeads; ++h)
      for (int c = 0; c < 2; ++c) sums[h][c] *= shared.decay[h];
    for (int k = 0; k < kKeys; ++k) {
      const float low = bf16_to_float(shared.keys[k][2 * thread]);
      const float high = bf16_to_float(shared.keys[k][2 * thread + 1]);
      for (int h = 0; h < kHeads; ++h) {
        sums[h][0] += shared.weights[h][k] * low;
        sums[h][1] += shared.weights[h][k] * high;
      }
    }
  }
  if (key == 0) {
    const float sink = first_head + head < p.heads ? p.sink[first_head + head] : 0.0F;
    const bool none = total == 0.0F || sink == CUDART_INF_F;
    shared.inverse[head] = none ? 0.0F : 1.0F / (total + expf(sink - top));
  }
  __syncthreads();
  for (int h = 0; h < kHeads && first_head + h < p.heads; ++h) {
    const float inverse = shared.inverse[h];
    for (int c = 0; c < 2; ++c) {
      // Not a product with 0: sums may be infinite where a sink of infinity says zero.
      const uint16_t out = inverse == 0.0F ? uint16_t{0} : to_bf16(sums[h][c] * inverse);
      p.out[(token * p.heads + first_head + h) * kDim + 2 * thread + c] = out;
    }
  }
}

}  // namespace

void run_general_decode(const cpu::SparseDecode& p, const Launch& launch) {
  if (p.tokens == 0 || p.heads == 0) return;
  const dim3 grid(static_cast<unsigned>(p.tokens),
                  static_cast<unsigned>((p.heads + kHeads - 1) / kHeads));
  general_kernel<<<grid, kThreads, 0, launch.stream>>>(decode_params(p));
  check_launch("sparse_decode (general)");
}

}  // namespace warmgate::kernels::cuda
