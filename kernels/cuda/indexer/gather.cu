// Rows out of pages into one array, one request behind the other. Every block sums the requests'
// row counts itself, 1024 requests at a time; rows are then dealt out evenly over all blocks,
// whatever the lengths are.
#include <cstdint>

#include "kernels/cuda/indexer/quant.h"
#include "kernels/cuda/indexer/table.cuh"

namespace warmgate::kernels::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kSegment = 1024;  // requests a scan
constexpr int kPerThread = kSegment / kThreads;

struct Params {
  int64_t requests, ratio;
  int row_bytes;
  const int32_t* seq_lens;
  cpu::Pages pages;
  cpu::BlockTable table;
  uint8_t* values;
  uint8_t* scales;
};

// begins[i] = rows of this segment's requests before i; begins[count] = all of them.
__device__ int64_t scan_segment(const Params& p, int64_t first, int count, int64_t* begins) {
  __shared__ int64_t warp_sums[kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t rows[kPerThread], sum = 0;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int at = threadIdx.x * kPerThread + i;
    rows[i] = sum;
    if (at < count) sum += max(p.seq_lens[first + at] / p.ratio, int64_t{0});
  }
  int64_t inclusive = sum;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int64_t other = __shfl_up_sync(0xFFFFFFFFu, inclusive, step);
    if (lane >= step) inclusive += other;
  }
  __syncthreads();  // whoever still reads begins or warp_sums of the last segment
  if (lane == 31) warp_sums[warp] = inclusive;
  __syncthreads();
  int64_t before = inclusive - sum, total = 0;
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) {
    before += i < warp ? warp_sums[i] : 0;
    total += warp_sums[i];
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) begins[threadIdx.x * kPerThread + i] = before + rows[i];
  if (threadIdx.x == 0) begins[kSegment] = total;
  __syncthreads();
  return total;
}

// T: what is moved at a time; row_bytes / sizeof(T) lanes work on a row.
template <class T>
__global__ void __launch_bounds__(kThreads) gather_indexer_keys_kernel(const Params p) {
  __shared__ int64_t begins[kSegment + 1];
  const int lanes = min(p.row_bytes / static_cast<int>(sizeof(T)), 32);
  const int64_t worker = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / lanes;
  const int64_t workers = static_cast<int64_t>(gridDim.x) * kThreads / lanes;
  const int lane = threadIdx.x % lanes;
  int64_t segment_begin = 0;
  for (int64_t first = 0; first < p.requests; first += kSegment) {
    const int count = static_cast<int>(min(p.requests - first, int64_t{kSegment}));
    const int64_t total = scan_segment(p, first, count, begins);
    for (int64_t row = worker; row < total; row += workers) {
      int low = 0, high = count - 1;  // the last request that begins at or before the row
      while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (begins[middle] <= row) {
          low = middle;
        } else {
          high = middle - 1;
        }
      }
      const int64_t slot = slot_of(p.table, first + low, row - begins[low]);
      const uint8_t* page = p.pages.base + slot / p.pages.rows * p.pages.stride;
      const int64_t in_page = slot % p.pages.rows, out = segment_begin + row;
      for (int i = lane; i < p.row_bytes / static_cast<int>(sizeof(T)); i += lanes) {
        reinterpret_cast<T*>(p.values + out * p.row_bytes)[i] =
            reinterpret_cast<const T*>(page + in_page * p.row_bytes)[i];
      }
      const uint8_t* scale = page + p.pages.rows * p.row_bytes + in_page * 4;
      if constexpr (sizeof(T) >= 4) {
        if (lane == 0) {
          *reinterpret_cast<uint32_t*>(p.scales + out * 4) =
              *reinterpret_cast<const uint32_t*>(scale);
        }
      } else {
        if (lane < 4) p.scales[out * 4 + lane] = scale[lane];
      }
    }
    segment_begin += total;
  }
}

}  // namespace

Reason can_run(const cpu::GatherIndexerKeys& p, const Launch& launch) {
  if (launch.arch < 80) return "gather_indexer_keys: needs arch >= 80";
  if (p.ratio <= 0) return "gather_indexer_keys: ratio is not positive";
  if (p.requests > 0 && (p.pages.rows <= 0 || p.table.page_rows <= 0)) {
    return "gather_indexer_keys: pages without rows";
  }
  return {};
}

void run(const cpu::GatherIndexerKeys& p, const Launch& launch) {
  if (p.requests <= 0) return;
  const Params params{p.requests, p.ratio, static_cast<int>(cpu::index_value_bytes(p.format)),
                      p.seq_lens, p.pages, p.table,
                      p.values,   p.scales};
  const auto address = reinterpret_cast<std::uintptr_t>(p.pages.base) |
                       reinterpret_cast<std::uintptr_t>(p.values) |
                       static_cast<std::uintptr_t>(p.pages.stride);
  const bool scales_aligned = reinterpret_cast<std::uintptr_t>(p.scales) % 4 == 0;
  const auto blocks = static_cast<unsigned>(launch.multiprocessors * 8);
  if (address % 16 == 0 && scales_aligned) {
    gather_indexer_keys_kernel<uint4><<<blocks, kThreads, 0, launch.stream>>>(params);
  } else {
    gather_indexer_keys_kernel<uint8_t><<<blocks, kThreads, 0, launch.stream>>>(params);
  }
  check_launch("gather_indexer_keys");
}

}  // namespace warmgate::kernels::cuda
