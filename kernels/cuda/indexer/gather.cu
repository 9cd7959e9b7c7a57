// Rows out of pages into one array, one request behind the other. Every block sums the requests'
// row counts itself, 1024 requests at a time; 32 rows at a time are then dealt out evenly over all
// warps, whatever the lengths are. A lane finds one of the 32 rows; all lanes then copy all of
// them, 16 bytes at a time, so that four or eight rows are one access of 512 bytes.
#include <cstdint>

#include "kernels/cuda/indexer/quant.h"
#include "kernels/cuda/indexer/table.cuh"

namespace warmgate::kernels::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 4;      // a multiprocessor
constexpr int kSegment = 1024;  // requests a scan
constexpr int kPerThread = kSegment / kThreads;
constexpr int kAtOnce = 8;  // pieces a lane has in flight

struct Params {
  int64_t requests;
  int32_t ratio;
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
    if (at < count) sum += max(p.seq_lens[first + at] / p.ratio, 0);
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

struct Place {
  const uint8_t* values;
  const uint8_t* scale;
};

// Row `row` of a segment's rows; `begins` of its `count` requests from `first`.
template <int kRowBytes>
__device__ __forceinline__ Place find(const Params& p, int64_t first, int count,
                                      const int64_t* begins, int64_t row) {
  int low = 0, high = count - 1;  // the last request that begins at or before the row
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (begins[middle] <= row) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const uint32_t at = static_cast<uint32_t>(row - begins[low]);  // a length is below 2^31
  const uint32_t table_rows = static_cast<uint32_t>(p.table.page_rows);
  const uint32_t page_rows = static_cast<uint32_t>(p.pages.rows);
  const uint32_t block = at / table_rows, within = at - block * table_rows;
  const int32_t id = __ldg(p.table.entries + (first + low) * p.table.stride + block);
  int64_t page = id < 0 ? 0 : id;
  uint32_t in_page = within;
  if (table_rows != page_rows) {
    const int64_t slot = page * table_rows + within;
    page = slot / page_rows;
    in_page = static_cast<uint32_t>(slot % page_rows);
  }
  const uint8_t* base = p.pages.base + page * p.pages.stride;
  return {base + in_page * kRowBytes, base + page_rows * kRowBytes + in_page * 4};
}

// T: what is moved at a time.
template <class T, int kRowBytes>
__global__ void __launch_bounds__(kThreads, kBlocks) gather_indexer_keys_kernel(const Params p) {
  __shared__ int64_t begins[kSegment + 1];
  constexpr int kPieces = kRowBytes / static_cast<int>(sizeof(T));  // a row
  constexpr int kLoads = kPieces < kAtOnce ? kPieces : kAtOnce;
  const int lane = threadIdx.x % 32;
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  int64_t segment_begin = 0;
  for (int64_t first = 0; first < p.requests; first += kSegment) {
    const int count = static_cast<int>(min(p.requests - first, int64_t{kSegment}));
    const int64_t total = scan_segment(p, first, count, begins);
    // Lanes beyond the end take the last row; they write nothing.
    const auto place_at = [&](int64_t base) {
      return find<kRowBytes>(p, first, count, begins, min(base + lane, total - 1));
    };
    int64_t base = warp * 32;
    Place next{};
    if (base < total) next = place_at(base);
    for (; base < total; base += step) {
      const Place place = next;
      const int rows = static_cast<int>(min(total - base, int64_t{32}));
      const int64_t out = segment_begin + base;
      [[maybe_unused]] uint32_t scale = 0;
      if constexpr (sizeof(T) >= 4) scale = __ldcs(reinterpret_cast<const uint32_t*>(place.scale));
      T* values = reinterpret_cast<T*>(p.values + out * kRowBytes);
      for (int done = 0; done < kPieces; done += kLoads) {
        T pieces[kLoads];
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
          const int at = (done + i) * 32 + lane;
          const auto from = reinterpret_cast<const T*>(__shfl_sync(
              0xFFFFFFFFu, reinterpret_cast<unsigned long long>(place.values), at / kPieces));
          pieces[i] = __ldcs(from + at % kPieces);
        }
        // Found while this one's pieces are on their way.
        if (done == 0 && base + step < total) next = place_at(base + step);
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
          const int at = (done + i) * 32 + lane;
          if (at < rows * kPieces) __stcs(values + at, pieces[i]);
        }
      }
      if (lane < rows) {
        uint8_t* to = p.scales + (out + lane) * 4;
        if constexpr (sizeof(T) >= 4) {
          __stcs(reinterpret_cast<uint32_t*>(to), scale);
        } else {
#pragma unroll
          for (int i = 0; i < 4; ++i) to[i] = place.scale[i];
        }
      }
    }
    segment_begin += total;
  }
}

template <class T>
void start(const Params& params, cpu::IndexFormat format, const Launch& launch) {
  const auto blocks = static_cast<unsigned>(launch.multiprocessors * kBlocks);
  if (format == cpu::IndexFormat::kFp8) {
    gather_indexer_keys_kernel<T, 128><<<blocks, kThreads, 0, launch.stream>>>(params);
  } else {
    gather_indexer_keys_kernel<T, 64><<<blocks, kThreads, 0, launch.stream>>>(params);
  }
}

}  // namespace

Reason can_run(const cpu::GatherIndexerKeys& p, const Launch& launch) {
  if (launch.arch < 80) return "gather_indexer_keys: needs arch >= 80";
  if (p.ratio <= 0 || p.ratio > 0x7FFFFFFF) return "gather_indexer_keys: ratio out of range";
  if (p.requests > 0 && (p.pages.rows <= 0 || p.table.page_rows <= 0)) {
    return "gather_indexer_keys: pages without rows";
  }
  if (p.pages.rows > (1 << 24) || p.table.page_rows > (1 << 24)) {
    return "gather_indexer_keys: pages of more than 2^24 rows";
  }
  return {};
}

void run(const cpu::GatherIndexerKeys& p, const Launch& launch) {
  if (p.requests <= 0) return;
  const Params params{
      p.requests, static_cast<int32_t>(p.ratio), p.seq_lens, p.pages, p.table, p.values, p.scales};
  const auto address = reinterpret_cast<std::uintptr_t>(p.pages.base) |
                       reinterpret_cast<std::uintptr_t>(p.values) |
                       static_cast<std::uintptr_t>(p.pages.stride);
  if (address % 16 == 0 && reinterpret_cast<std::uintptr_t>(p.scales) % 4 == 0) {
    start<uint4>(params, p.format, launch);
  } else {
    start<uint8_t>(params, p.format, launch);
  }
  check_launch("gather_indexer_keys");
}

}  // namespace warmgate::kernels::cuda
