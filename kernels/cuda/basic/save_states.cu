// One block a token: a copy with one addition.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/compressor.h"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kThreads = 128, kAtOnce = 4;

__global__ void __launch_bounds__(kThreads) save_kernel(cpu::SavePartialStates p) {
  const int64_t t = blockIdx.x, slot = p.slots[t];
  if (slot < 0) return;
  const int half = static_cast<int>(p.width / 4), pieces = 2 * half;
  const float4* in = reinterpret_cast<const float4*>(p.kv_score + t * 2 * p.width);
  const uint32_t phase = static_cast<uint32_t>(p.positions[t]) % static_cast<uint32_t>(p.ratio);
  const float4* ape = reinterpret_cast<const float4*>(p.ape + phase * p.width);
  const uint32_t page = static_cast<uint32_t>(slot) / static_cast<uint32_t>(p.state.rows);
  const uint32_t row = static_cast<uint32_t>(slot) - page * static_cast<uint32_t>(p.state.rows);
  float4* out = reinterpret_cast<float4*>(p.state.base + page * p.state.stride) +
                static_cast<int64_t>(row) * pieces;
  for (int first = threadIdx.x; first < pieces; first += kThreads * kAtOnce) {
    float4 v[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * kThreads;
      if (at < pieces) v[i] = __ldcs(in + at);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * kThreads;
      if (at >= pieces) break;
      if (at >= half) {
        const float4 a = __ldg(ape + at - half);
        v[i] = {v[i].x + a.x, v[i].y + a.y, v[i].z + a.z, v[i].w + a.w};
      }
      out[at] = v[i];
    }
  }
}

}  // namespace

Reason can_run(const cpu::SavePartialStates& p, const Launch&) {
  return first_of(refuse(p.width % 4 != 0, "state rows: width is no multiple of four"),
                  refuse(!aligned(p.kv_score) || !aligned(p.ape) || !aligned(p.state),
                         "state rows: a tensor or the state pages are not 16-byte aligned"));
}
void run(const cpu::SavePartialStates& p, const Launch& launch) {
  if (p.tokens <= 0 || p.width <= 0) return;
  save_kernel<<<static_cast<unsigned>(p.tokens), kThreads, 0, launch.stream>>>(p);
  check_launch("save_partial_states");
}

}  // namespace warmgate::kernels::cuda
