// Stored weights and quantised inputs as bf16, and the activation of the gated MLP.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/gemm_kernels.h"
#include "kernels/cuda/basic/gemm_weights.cuh"

namespace warmgate::kernels::cuda {
namespace {

using cpu::WeightType;
constexpr int kThreads = 256;

__device__ __forceinline__ int64_t thread_of_grid() {
  return blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
}
__device__ __forceinline__ int64_t threads_of_grid() {
  return static_cast<int64_t>(gridDim.x) * kThreads;
}

// stride is a multiple of eight: eight elements a thread.
template <WeightType type>
__global__ void __launch_bounds__(kThreads)
    widen_kernel(cpu::Weights w, int64_t first, int64_t count, int64_t stride, bool eights,
                 uint16_t* out) {
  const int64_t pieces = stride / 8;
  for (int64_t i = thread_of_grid(); i < count * pieces; i += threads_of_grid()) {
    const int64_t row = i / pieces, k = (i - row * pieces) * 8;
    Eight v{};
    if (eights) {
      v = weights_at<type>(w, first + row, k);
    } else {
#pragma unroll
      for (int c = 0; c < 8; ++c)
        v.x[c] = k + c < w.columns ? weight_at<type>(w, first + row, k + c) : 0;
    }
    reinterpret_cast<uint4*>(out)[i] = narrow(v);
  }
}

__global__ void __launch_bounds__(kThreads)
    inputs_kernel(const uint8_t* x, const float* scales, int64_t elements, int64_t columns,
                  uint16_t* out) {
  const int64_t across = (columns + 127) / 128;
  for (int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const int64_t row = i / columns;
    out[i] = to_bf16(e4m3_to_float(x[i]) * scales[row * across + (i - row * columns) / 128]);
  }
}
// columns a multiple of 128.
__global__ void __launch_bounds__(kThreads)
    inputs8_kernel(const uint8_t* x, const float* scales, int64_t pieces, uint16_t* out) {
  for (int64_t i = thread_of_grid(); i < pieces; i += threads_of_grid()) {
    const uint2 v = __ldcs(reinterpret_cast<const uint2*>(x) + i);
    const float scale = __ldg(scales + i / 16);
    const uint32_t pairs[4] = {v.x, v.x >> 16, v.y, v.y >> 16};
    uint32_t words[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float2 f = e4m3x2_to_floats(pairs[c]);
      words[c] = narrow2(f.x * scale, f.y * scale);
    }
    reinterpret_cast<uint4*>(out)[i] = {words[0], words[1], words[2], words[3]};
  }
}

__global__ void __launch_bounds__(kThreads)
    activate_kernel(int64_t elements, int64_t inter, const uint16_t* gate_up, float limit,
                    uint16_t* h) {
  for (int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const int64_t t = i / inter, c = i - t * inter;
    float gate = bf16_to_float(gate_up[t * 2 * inter + c]);
    float up = bf16_to_float(gate_up[(t * 2 + 1) * inter + c]);
    // Written so that NaN stays.
    gate = gate > limit ? limit : gate;
    up = up > limit ? limit : up < -limit ? -limit : up;
    h[i] = to_bf16(__fdiv_rn(gate, 1.0f + expf(-gate)) * up);
  }
}

}  // namespace

void widen_weights(const cpu::Weights& w, std::int64_t first, std::int64_t count,
                   std::int64_t stride, cpu::Bf16* out, const Launch& launch) {
  const bool eights = w.columns % 8 == 0 && w.columns == stride && aligned(w.data);
  const unsigned grid = grid_for(launch, count * stride / 8, kThreads, 16);
  if (w.type == WeightType::kFp8) {
    widen_kernel<WeightType::kFp8>
        <<<grid, kThreads, 0, launch.stream>>>(w, first, count, stride, eights, out);
  } else {
    widen_kernel<WeightType::kFp4>
        <<<grid, kThreads, 0, launch.stream>>>(w, first, count, stride, eights, out);
  }
  check_launch("weights to bf16");
}

void widen_inputs(const cpu::E4m3* x, const float* scales, std::int64_t rows, std::int64_t columns,
                  cpu::Bf16* out, const Launch& launch) {
  if (columns % 128 == 0 && aligned(x, 8)) {
    const std::int64_t pieces = rows * columns / 8;
    const unsigned grid = grid_for(launch, pieces, kThreads, 16);
    inputs8_kernel<<<grid, kThreads, 0, launch.stream>>>(x, scales, pieces, out);
  } else {
    const unsigned grid = grid_for(launch, rows * columns, kThreads, 16);
    inputs_kernel<<<grid, kThreads, 0, launch.stream>>>(x, scales, rows * columns, columns, out);
  }
  check_launch("inputs to bf16");
}

void activate(std::int64_t tokens, std::int64_t inter, const cpu::Bf16* gate_up, float limit,
              cpu::Bf16* h, const Launch& launch) {
  const unsigned grid = grid_for(launch, tokens * inter, kThreads, 16);
  activate_kernel<<<grid, kThreads, 0, launch.stream>>>(tokens * inter, inter, gate_up,
                                                        limit > 0 ? limit : __builtin_inff(), h);
  check_launch("silu(gate) * up");
}

}  // namespace warmgate::kernels::cuda
