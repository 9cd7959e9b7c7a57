// A warp takes four heads of one token, or the token's key.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/query_key.h"
#include "kernels/cuda/rows.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kHeads = 4;

__device__ __forceinline__ void normalise(Row512& row, float eps) {
  float squares = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    squares += row.low.x[i] * row.low.x[i] + row.high.x[i] * row.high.x[i];
  squares = sum_of<32>(squares);
  const float factor = __fdiv_rn(1.0f, __fsqrt_rn(squares / 512.0f + eps));
#pragma unroll
  for (int i = 0; i < 8; ++i) row.low.x[i] *= factor, row.high.x[i] *= factor;
}

__global__ void __launch_bounds__(kThreads) query_kernel(cpu::QNormRopeInsert p, int groups) {
  const int lane = threadIdx.x % 32;
  const int64_t unit = blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / 32;
  const int64_t t = unit / (groups + 1);
  const int group = static_cast<int>(unit - t * (groups + 1));
  if (t >= p.tokens) return;
  const bool rotates = lane >= kFirstRopeLane;
  const bool key = group == groups;
  const int64_t slot = key ? p.slots[t] : 0;
  if (slot < 0) return;
  const int first = group * kHeads;
  const uint4* in = reinterpret_cast<const uint4*>(
      key ? p.kv + t * cpu::kHeadDim : p.q + (t * p.heads + first) * cpu::kHeadDim);
  const int rows = key ? 1 : static_cast<int>(min(static_cast<int64_t>(kHeads), p.heads - first));
  uint4 low[kHeads], high[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (h >= rows) continue;
    low[h] = __ldcs(in + h * 64 + lane);
    high[h] = __ldcs(in + h * 64 + 32 + lane);
  }
  Angles angles{};
  if (rotates) angles = angles_of(p.cos_sin + p.positions[t] * 64, lane - kFirstRopeLane);
  if (key) {
    Row512 row = widen(low[0], high[0]);
    if (rotates) rotate<false>(row.high, angles.cosines, angles.sines);
    write_ds_mla(row, ds_mla_row(p.pages, slot), lane);
    return;
  }
  uint4* out = reinterpret_cast<uint4*>(p.q_out + (t * p.padded_heads + first) * cpu::kHeadDim);
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (first + h >= p.padded_heads) break;
    uint4 out_low = {0, 0, 0, 0}, out_high = {0, 0, 0, 0};
    if (h < rows) {
      Row512 row = widen(low[h], high[h]);
      normalise(row, p.eps);
      if (rotates) rotate<false>(row.high, angles.cosines, angles.sines);
      out_low = narrow(row.low);
      out_high = narrow(row.high);
    }
    __stcs(out + h * 64 + lane, out_low);
    __stcs(out + h * 64 + 32 + lane, out_high);
  }
}

__global__ void __launch_bounds__(kThreads) pad_kernel(cpu::PadQ p) {
  const int64_t row = p.padded_heads * 64, real = p.heads * 64;  // 16-byte pieces of a token
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; i < p.tokens * row;
       i += step) {
    const int64_t t = i / row, c = i - t * row;
    reinterpret_cast<uint4*>(p.q_out)[i] =
        c < real ? reinterpret_cast<const uint4*>(p.q)[t * real + c] : uint4{0, 0, 0, 0};
  }
}

}  // namespace

Reason can_run(const cpu::QNormRopeInsert& p, const Launch&) {
  return first_of(
      refuse(!aligned(p.q) || !aligned(p.kv) || !aligned(p.q_out) || !aligned(p.cos_sin),
             "query and key: a tensor is not 16-byte aligned"),
      refuse(!aligned(p.pages), "query and key: pages are not 16-byte aligned"),
      refuse(p.padded_heads < p.heads, "query and key: fewer padded heads than heads"));
}
void run(const cpu::QNormRopeInsert& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  const int groups = static_cast<int>(blocks_for(p.padded_heads, kHeads));
  const auto blocks = static_cast<unsigned>(blocks_for(p.tokens * (groups + 1), kWarps));
  query_kernel<<<blocks, kThreads, 0, launch.stream>>>(p, groups);
  check_launch("qnorm_rope_insert");
}

Reason can_run(const cpu::PadQ& p, const Launch&) {
  return refuse(!aligned(p.q) || !aligned(p.q_out), "pad_q: a tensor is not 16-byte aligned");
}
void run(const cpu::PadQ& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  const unsigned grid = grid_for(launch, p.tokens * p.padded_heads * 64, kThreads, 16);
  pad_kernel<<<grid, kThreads, 0, launch.stream>>>(p);
  check_launch("pad_q");
}

}  // namespace warmgate::kernels::cuda
