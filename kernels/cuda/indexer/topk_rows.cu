// Many rows: as many blocks as there is room for take them in turn. While a block chooses among a
// row's candidates, the copy engine brings its next row.
#include <algorithm>

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/indexer/topk_paths.h"
#include "kernels/cuda/indexer/topk_selection.cuh"

namespace warmgate::kernels::cuda::topk {

namespace {

constexpr int kItems = 32;
constexpr int kBlocks = 2;  // a multiprocessor
constexpr int kPart = kItems * kThreads;

struct Memory {
  alignas(128) float row[kPart];
  Shared s;
  uint32_t above_bits[kPart / 32], equal_bits[kPart / 32];
  Barrier full;
  int2 range[2];  // start and count of this row and of the next
};

__global__ void __launch_bounds__(kThreads, kBlocks) topk_rows_kernel(const cpu::TopkPerRow p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) uint8_t bytes_of[];
  Memory& m = *reinterpret_cast<Memory*>(bytes_of);
  const auto range_of = [&](int64_t token) {
    if (token >= p.tokens) return int2{0, 0};
    const int start = p.row_start != nullptr ? p.row_start[token] : 0;
    return int2{start, max(p.row_end[token] - start, 0)};
  };
  // By one thread. A row of which everything is chosen is not read.
  const auto bring = [&](int64_t token, int2 range, int turn) {
    m.range[turn] = range;
    if (range.y <= p.topk) return;
    const int first = range.x / 4 * 4, last = (range.x + range.y + 3) / 4 * 4;
    const uint32_t bytes = static_cast<uint32_t>(last - first) * 4;
    arrive_expecting(&m.full, bytes);
    copy_bulk(m.row, p.logits + token * p.logits_stride + first, bytes, &m.full);
  };
  Selection<kItems, true> select{
      m.s, m.above_bits, m.equal_bits, cg::this_cluster(), 0, 1, nullptr, 0, 0, {}, 0};
  if (threadIdx.x == 0) {
    init_barrier(&m.full, 1);
    fence_barrier_init();
    bring(blockIdx.x, range_of(blockIdx.x), 0);
  }
  select.reset();
  __syncthreads();
  const auto topk = static_cast<uint32_t>(p.topk);
  int phase = 0, turn = 0;
  for (int64_t token = blockIdx.x; token < p.tokens; token += gridDim.x, turn ^= 1) {
    const int start = m.range[turn].x, count = m.range[turn].y;
    int2 next{};
    if (threadIdx.x == 0) next = range_of(token + gridDim.x);
    int32_t* out = p.indices + token * p.indices_stride;
    if (count <= p.topk) {
      if (threadIdx.x == 0) bring(token + gridDim.x, next, turn ^ 1);
      for (int64_t i = threadIdx.x; i < p.topk; i += kThreads) {
        out[i] = i < count ? static_cast<int32_t>(i) : -1;
      }
      __syncthreads();  // the next range is there
      continue;
    }
    select.row = p.logits + token * p.logits_stride + start / 4 * 4;
    select.begin = start % 4;
    select.end = start % 4 + count;
    wait(&m.full, phase);
    phase ^= 1;
    select.load(m.row);
    const bool listed = select.list_candidates(topk, m.row);  // ends with a barrier
    if (threadIdx.x == 0) bring(token + gridDim.x, next, turn ^ 1);
    if (listed) {
      select.choose_from_list(topk);
    } else {
      select.choose_from_all(topk);
    }
    __syncthreads();
    select.write(out);
  }
#endif
}

}  // namespace

void run_rows(const cpu::TopkPerRow& p, const Launch& launch) {
  constexpr int kBytes = static_cast<int>(sizeof(Memory));
  check(cudaFuncSetAttribute(topk_rows_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
        "topk_rows's shared memory");
  const auto blocks = std::min<int64_t>(p.tokens, int64_t{kBlocks} * launch.multiprocessors);
  topk_rows_kernel<<<static_cast<unsigned>(blocks), kThreads, kBytes, launch.stream>>>(p);
  check_launch("topk_rows");
}

}  // namespace warmgate::kernels::cuda::topk
