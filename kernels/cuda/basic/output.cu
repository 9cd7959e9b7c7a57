// A warp takes four heads of one token; sixteen lanes share a scale.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/output.h"
#include "kernels/cuda/rows.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kHeads = 4;

__global__ void __launch_bounds__(kThreads)
    output_kernel(cpu::InverseRopeQuant p, int heads, int groups) {
  const int lane = threadIdx.x % 32;
  const int64_t unit = blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / 32;
  const int64_t t = unit / groups;
  if (t >= p.tokens) return;
  const int first = static_cast<int>(unit - t * groups) * kHeads;
  const uint4* in =
      reinterpret_cast<const uint4*>(p.o + (t * p.padded_heads + first) * cpu::kHeadDim);
  uint4 low[kHeads], high[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (first + h >= heads) continue;
    low[h] = __ldcs(in + h * 64 + lane);
    high[h] = __ldcs(in + h * 64 + 32 + lane);
  }
  const bool rotates = lane >= kFirstRopeLane;
  Angles angles{};
  if (rotates) angles = angles_of(p.cos_sin + p.positions[t] * 64, lane - kFirstRopeLane);
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (first + h >= heads) break;
    Row512 row = widen(low[h], high[h]);
    if (rotates) rotate<true>(row.high, angles.cosines, angles.sines);
    const uint32_t a = e4m3_scale_byte(largest_of<16>(magnitude(row.low)), kFloor1e10);
    const uint32_t b = e4m3_scale_byte(largest_of<16>(magnitude(row.high)), kFloor1e10);
    const int64_t head = t * heads + first + h;
    uint2* q = reinterpret_cast<uint2*>(p.q + head * cpu::kHeadDim);
    __stcs(q + lane, quantise(row.low, inverse_scale(a)));
    __stcs(q + 32 + lane, quantise(row.high, inverse_scale(b)));
    const uint32_t a2 = __shfl_sync(kWholeWarp, a, 16), b2 = __shfl_sync(kWholeWarp, b, 16);
    if (lane == 0) {
      reinterpret_cast<float4*>(p.scales)[head] = {ue8m0_to_float(a), ue8m0_to_float(a2),
                                                   ue8m0_to_float(b), ue8m0_to_float(b2)};
    }
  }
}

}  // namespace

Reason can_run(const cpu::InverseRopeQuant& p, const Launch&) {
  return first_of(
      refuse(p.inputs % cpu::kHeadDim != 0, "inverse rotation: inputs are not whole heads"),
      refuse(p.groups * p.inputs > p.padded_heads * cpu::kHeadDim,
             "inverse rotation: more heads than there are"),
      refuse(!aligned(p.o) || !aligned(p.q) || !aligned(p.scales) || !aligned(p.cos_sin),
             "inverse rotation: a tensor is not 16-byte aligned"));
}
void run(const cpu::InverseRopeQuant& p, const Launch& launch) {
  const int heads = static_cast<int>(p.groups * p.inputs / cpu::kHeadDim);
  if (p.tokens <= 0 || heads <= 0) return;
  const int groups = static_cast<int>(blocks_for(heads, kHeads));
  const auto blocks = static_cast<unsigned>(blocks_for(p.tokens * groups, kWarps));
  output_kernel<<<blocks, kThreads, 0, launch.stream>>>(p, heads, groups);
  check_launch("inverse_rope_quant");
}

}  // namespace warmgate::kernels::cuda
