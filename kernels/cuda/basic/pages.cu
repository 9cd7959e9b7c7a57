// One warp a row. Memory alone counts: the loads of all rows that a warp takes at once are issued
// before the first is used.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/pages.h"
#include "kernels/cuda/rows.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

template <int kRows>
__global__ void __launch_bounds__(kThreads) insert_kernel(cpu::InsertDsMla p) {
  const int lane = threadIdx.x % 32;
  const int64_t first = (blockIdx.x * static_cast<int64_t>(kWarps) + threadIdx.x / 32) * kRows;
  int64_t slots[kRows];
  uint4 low[kRows], high[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) slots[r] = first + r < p.tokens ? p.slots[first + r] : -1;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (slots[r] < 0) continue;
    const uint4* row = reinterpret_cast<const uint4*>(p.k + (first + r) * p.k_stride);
    low[r] = __ldcs(row + lane);
    high[r] = __ldcs(row + 32 + lane);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (slots[r] >= 0) write_ds_mla(widen(low[r], high[r]), ds_mla_row(p.pages, slots[r]), lane);
  }
}

// What a lane needs of a stored row: 8 bytes of the first 256 channels, then 8 of the others' e4m3
// or 16 of the rotated part, and all scales.
struct Stored {
  uint2 low, scales;
  uint4 high;
};
__device__ __forceinline__ Stored read_row(const PageRow& row, int lane) {
  Stored s;
  s.low = __ldg(reinterpret_cast<const uint2*>(row.data) + lane);
  if (lane < kFirstRopeLane) {
    const uint2 eight = __ldg(reinterpret_cast<const uint2*>(row.data + 256) + lane);
    s.high = {eight.x, eight.y, 0, 0};
  } else {
    s.high =
        __ldg(reinterpret_cast<const uint4*>(row.data + cpu::kNopeDim) + lane - kFirstRopeLane);
  }
  s.scales = __ldg(reinterpret_cast<const uint2*>(row.scales));
  return s;
}
__device__ __forceinline__ uint4 widen_e4m3(uint32_t first, uint32_t second, float scale) {
  uint32_t words[4];
  const uint32_t pairs[4] = {first, first >> 16, second, second >> 16};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 v = e4m3x2_to_floats(pairs[i]);
    words[i] = narrow2(v.x * scale, v.y * scale);
  }
  return {words[0], words[1], words[2], words[3]};
}

template <int kRows>
__global__ void __launch_bounds__(kThreads) gather_kernel(cpu::DequantGather p) {
  const int lane = threadIdx.x % 32;
  const int64_t b = blockIdx.y;
  const int length = p.seq_lens[b];
  const int count =
      p.gather_lens != nullptr ? p.gather_lens[b] : length / static_cast<int>(p.ratio);
  const int begin = p.gather_lens != nullptr ? length - count : 0;
  uint16_t* out = p.kv + b * p.request_stride + p.offset * cpu::kHeadDim;
  const int step = gridDim.x * kWarps * kRows;
  for (int first = (blockIdx.x * kWarps + threadIdx.x / 32) * kRows; first < count; first += step) {
    Stored rows[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      // Behind the end the last row once more: no branch between the loads.
      const int row = min(first + r, count - 1);
      rows[r] = read_row(ds_mla_row(p.pages, slot_of(p.table, b, begin + row)), lane);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (first + r >= count) break;
      uint4* to = reinterpret_cast<uint4*>(out + static_cast<int64_t>(first + r) * cpu::kHeadDim);
      const float low = ue8m0_to_float(rows[r].scales.x >> (lane / 8 * 8) & 255u);
      __stcs(to + lane, widen_e4m3(rows[r].low.x, rows[r].low.y, low));
      if (lane < kFirstRopeLane) {
        const float high = ue8m0_to_float(rows[r].scales.y >> (lane / 8 * 8) & 255u);
        __stcs(to + 32 + lane, widen_e4m3(rows[r].high.x, rows[r].high.y, high));
      } else {
        __stcs(to + 32 + lane, rows[r].high);
      }
    }
  }
}

}  // namespace

Reason can_run(const cpu::InsertDsMla& p, const Launch&) {
  return first_of(refuse(!aligned(p.k) || p.k_stride % 8 != 0, "insert: k is not 16-byte aligned"),
                  refuse(!aligned(p.pages), "insert: pages are not 16-byte aligned"));
}
void run(const cpu::InsertDsMla& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  if (p.tokens >= 8192) {
    insert_kernel<2><<<blocks_for(p.tokens, 2 * kWarps), kThreads, 0, launch.stream>>>(p);
  } else {
    insert_kernel<1><<<blocks_for(p.tokens, kWarps), kThreads, 0, launch.stream>>>(p);
  }
  check_launch("insert_ds_mla");
}

Reason can_run(const cpu::DequantGather& p, const Launch&) {
  return first_of(refuse(!aligned(p.pages), "gather: pages are not 16-byte aligned"),
                  refuse(!aligned(p.kv) || p.request_stride % 8 != 0,
                         "gather: the workspace is not 16-byte aligned"),
                  refuse(p.requests > 65535, "gather: more than 65535 requests"));
}
void run(const cpu::DequantGather& p, const Launch& launch) {
  if (p.requests <= 0) return;
  // How many rows there are is known on the device alone: enough blocks to fill it, shared out.
  const std::int64_t all = static_cast<std::int64_t>(processors(launch)) * 8;
  const dim3 grid(static_cast<unsigned>(blocks_for(all, p.requests)),
                  static_cast<unsigned>(p.requests));
  gather_kernel<4><<<grid, kThreads, 0, launch.stream>>>(p);
  check_launch("dequant_gather");
}

}  // namespace warmgate::kernels::cuda
