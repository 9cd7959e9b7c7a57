// One block a row. Rows that fit are held in registers between sum and scaling; a row is read whole
// before any of it is written, so y may be x.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/norm.h"
#include "kernels/cuda/rows.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;

struct Pair {
  cpu::RmsNorm norms[2];  // blockIdx.y picks
};

__device__ __forceinline__ float factor_of(float squares, int64_t width, float eps) {
  __shared__ float sums[kWarps];
  squares = sum_of<32>(squares);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = squares;
  __syncthreads();
  float all = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) all += sums[w];
  return __fdiv_rn(1.0f, __fsqrt_rn(__fdiv_rn(all, static_cast<float>(width)) + eps));
}

// Eight channels an access, up to kPieces of them a thread.
template <int kPieces>
__global__ void __launch_bounds__(kThreads) norm_kernel(Pair pair) {
  const cpu::RmsNorm p = blockIdx.y == 0 ? pair.norms[0] : pair.norms[1];
  const int64_t t = blockIdx.x;
  const int pieces = static_cast<int>(p.width / 8);
  const uint4* x = reinterpret_cast<const uint4*>(p.x + t * p.x_stride);
  const uint4* weight = reinterpret_cast<const uint4*>(p.weight);
  uint4 held[kPieces];
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int at = threadIdx.x + i * kThreads;
    held[i] = at < pieces ? x[at] : uint4{0, 0, 0, 0};
  }
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const Eight v = widen(held[i]);
#pragma unroll
    for (int k = 0; k < 8; ++k) squares += v.x[k] * v.x[k];
  }
  const float factor = factor_of(squares, p.width, p.eps);
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int at = threadIdx.x + i * kThreads;
    if (at >= pieces) continue;
    Eight v = widen(held[i]);
    const Eight w = widen(__ldg(weight + at));
#pragma unroll
    for (int k = 0; k < 8; ++k) v.x[k] = v.x[k] * factor * w.x[k];
    reinterpret_cast<uint4*>(p.y + t * p.y_stride)[at] = narrow(v);
  }
}

__global__ void __launch_bounds__(kThreads) any_norm_kernel(Pair pair) {
  const cpu::RmsNorm p = blockIdx.y == 0 ? pair.norms[0] : pair.norms[1];
  const uint16_t* x = p.x + blockIdx.x * p.x_stride;
  uint16_t* y = p.y + blockIdx.x * p.y_stride;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < p.width; i += kThreads) {
    const float v = bf16_to_float(x[i]);
    squares += v * v;
  }
  const float factor = factor_of(squares, p.width, p.eps);
  for (int64_t i = threadIdx.x; i < p.width; i += kThreads)
    y[i] = to_bf16(bf16_to_float(x[i]) * factor * bf16_to_float(p.weight[i]));
}

bool in_pieces(const cpu::RmsNorm& p) {
  return p.width % 8 == 0 && p.x_stride % 8 == 0 && p.y_stride % 8 == 0 && aligned(p.x) &&
         aligned(p.weight) && aligned(p.y);
}

void launch_norms(const Pair& pair, unsigned count, const Launch& launch) {
  const cpu::RmsNorm &a = pair.norms[0], &b = pair.norms[count - 1];
  const dim3 grid(static_cast<unsigned>(a.tokens), count);
  const std::int64_t width = std::max(a.width, b.width);
  if (!in_pieces(a) || !in_pieces(b) || width > 64 * kThreads) {
    any_norm_kernel<<<grid, kThreads, 0, launch.stream>>>(pair);
  } else if (width <= 8 * kThreads) {
    norm_kernel<1><<<grid, kThreads, 0, launch.stream>>>(pair);
  } else if (width <= 16 * kThreads) {
    norm_kernel<2><<<grid, kThreads, 0, launch.stream>>>(pair);
  } else if (width <= 32 * kThreads) {
    norm_kernel<4><<<grid, kThreads, 0, launch.stream>>>(pair);
  } else {
    norm_kernel<8><<<grid, kThreads, 0, launch.stream>>>(pair);
  }
  check_launch("rms_norm");
}

}  // namespace

Reason can_run(const cpu::RmsNorm&, const Launch&) { return {}; }
void run(const cpu::RmsNorm& p, const Launch& launch) {
  if (p.tokens <= 0 || p.width <= 0) return;
  Pair pair{{p, p}};
  cpu::RmsNorm& norm = pair.norms[0];
  if (norm.x_stride <= 0) norm.x_stride = p.width;
  if (norm.y_stride <= 0) norm.y_stride = p.width;
  launch_norms(pair, 1, launch);
}

Reason can_run(const cpu::FusedQkvNorm&, const Launch&) { return {}; }
void run(const cpu::FusedQkvNorm& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  const std::int64_t stride = p.q_width + p.kv_width;
  launch_norms(
      {{{p.tokens, p.q_width, p.qkv, p.q_norm, p.qr, p.eps, stride, p.q_width},
        {p.tokens, p.kv_width, p.qkv + p.q_width, p.kv_norm, p.kv, p.eps, stride, p.kv_width}}},
      2, launch);
}

}  // namespace warmgate::kernels::cuda
