// A block a row of any length: three digits of the ranks find the last one chosen, each by a pass
// over the row; a last pass writes the chosen columns in order.
#include "kernels/cuda/indexer/topk_block.cuh"
#include "kernels/cuda/indexer/topk_paths.h"

namespace warmgate::kernels::cuda::topk {

namespace {

constexpr int kThreads = 1024;

__global__ void __launch_bounds__(kThreads) topk_general_kernel(const cpu::TopkPerRow p) {
  __shared__ __align__(16) uint32_t bins[kBins];
  __shared__ uint32_t sums[2][kThreads / 32];
  __shared__ Found found;
  const int64_t token = blockIdx.x;
  const int64_t start = p.row_start != nullptr ? p.row_start[token] : 0;
  const int64_t count = max(p.row_end[token] - start, int64_t{0});
  int32_t* out = p.indices + token * p.indices_stride;
  if (count <= p.topk) {
    for (int64_t i = threadIdx.x; i < p.topk; i += kThreads) {
      out[i] = i < count ? static_cast<int32_t>(i) : -1;
    }
    return;
  }
  const float* row = p.logits + token * p.logits_stride + start;
  uint32_t prefix = 0, mask = 0, wanted = static_cast<uint32_t>(p.topk);
  for (int pass = 0; pass < kPasses; ++pass) {
    const int shift = shift_of(pass);
    for (int i = threadIdx.x; i < kBins; i += kThreads) bins[i] = 0;
    __syncthreads();
    for (int64_t j = threadIdx.x; j < count; j += kThreads) {
      const uint32_t rank = rank_of(row[j]);
      if ((rank & mask) == prefix) atomicAdd(&bins[(rank >> shift) & digit_mask(pass)], 1u);
    }
    __syncthreads();
    const Found here = find_bin<kThreads>(bins, wanted, sums[0], &found);
    prefix |= here.bin << shift;
    mask |= digit_mask(pass) << shift;
    wanted -= here.above;
    if (here.in_bin == wanted) break;  // all of the bin is chosen
    __syncthreads();
  }
  // Of those that equal the last one, `wanted` with the lowest columns.
  uint32_t above = 0, equal = 0;  // before this tile
  int turn = 0;
  for (int64_t tile = 0; tile < count; tile += kThreads, turn ^= 1) {
    const int64_t j = tile + threadIdx.x;
    const uint32_t rank = j < count ? rank_of(row[j]) & mask : 0;
    const bool is_above = j < count && rank > prefix, is_equal = j < count && rank == prefix;
    uint32_t total;
    const uint32_t before =
        scan_block<kThreads>((is_above ? 0x10000u : 0u) | (is_equal ? 1u : 0u), sums[turn], total);
    const uint32_t ties = equal + (before & 0xFFFFu);
    if (is_above || (is_equal && ties < wanted)) {
      out[above + (before >> 16) + min(ties, wanted)] = static_cast<int32_t>(j);
    }
    above += total >> 16;
    equal += total & 0xFFFFu;
  }
}

}  // namespace

void run_general(const cpu::TopkPerRow& p, const Launch& launch) {
  topk_general_kernel<<<static_cast<unsigned>(p.tokens), kThreads, 0, launch.stream>>>(p);
  check_launch("topk_general");
}

}  // namespace warmgate::kernels::cuda::topk
