// A cluster a row, each block a part of it, read once into registers (topk.md). Histograms of a
// digit are made in each block and added up in the first one's shared memory; the chosen columns
// become bits, so that writing them in order is a count of bits.
#include <cooperative_groups.h>

#include "kernels/cuda/indexer/topk_block.cuh"
#include "kernels/cuda/indexer/topk_paths.h"

namespace warmgate::kernels::cuda::topk {

namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kMostBlocks = 16;

// What blocks of a cluster tell each other.
struct Shared {
  uint32_t bins[kBins];
  uint32_t total[kBins];  // the cluster's, in its first block
  uint32_t sums[2][kWarps];
  uint32_t counts[2];  // chosen for sure, equal to the last one
  Found found;
};

// kItems: scores a thread, a multiple of 4. Thread t holds columns 4·(i·kThreads + t) + 0..3 of its
// block's part.
template <int kItems, bool kAlone>
__global__ void __launch_bounds__(kThreads, 2) topk_cluster_kernel(const cpu::TopkPerRow p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kPart = kItems * kThreads;
  constexpr int kWords = kPart / 32;
  __shared__ Shared s;
  __shared__ uint32_t above_bits[kWords], equal_bits[kWords];
  cg::cluster_group cluster = cg::this_cluster();
  const int blocks = kAlone ? 1 : static_cast<int>(cluster.num_blocks());
  const int rank = kAlone ? 0 : static_cast<int>(cluster.block_rank());
  const auto sync = [&] {
    if constexpr (kAlone) {
      __syncthreads();
    } else {
      cluster.sync();
    }
  };
  const int64_t token = blockIdx.x / blocks;
  const int start = p.row_start != nullptr ? p.row_start[token] : 0;
  const int count = max(p.row_end[token] - start, 0);
  int32_t* out = p.indices + token * p.indices_stride;
  if (count <= p.topk) {
    for (int64_t i = rank * kThreads + threadIdx.x; i < p.topk; i += blocks * kThreads) {
      out[i] = i < count ? static_cast<int32_t>(i) : -1;
    }
    return;
  }
  // Parts begin at multiples of four columns; what lies outside start..end-1 ranks 0.
  const int first = start / 4 * 4 + rank * kPart;
  const int end = start + count;
  const float* row = p.logits + token * p.logits_stride;
  uint32_t ranks[kItems];
#pragma unroll
  for (int i = 0; i < kItems; i += 4) {
    const int column = first + i * kThreads + static_cast<int>(threadIdx.x) * 4;
    float4 x = {0, 0, 0, 0};
    if (column < end) x = __ldcs(reinterpret_cast<const float4*>(row + column));
    const float values[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      ranks[i + k] = column + k >= start && column + k < end ? rank_of(values[k]) : 0;
    }
  }
  for (int i = threadIdx.x; i < kBins; i += kThreads) s.bins[i] = s.total[i] = 0;
  for (int i = threadIdx.x; i < kWords; i += kThreads) above_bits[i] = equal_bits[i] = 0;
  sync();
  uint32_t prefix = 0, mask = 0, wanted = static_cast<uint32_t>(p.topk);
  Found here{};
  for (int pass = 0; pass < kPasses; ++pass) {
    const int shift = shift_of(pass);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (ranks[i] != 0 && (ranks[i] & mask) == prefix) {
        atomicAdd(&s.bins[(ranks[i] >> shift) & digit_mask(pass)], 1u);
      }
    }
    if constexpr (kAlone) {
      __syncthreads();
      here = find_bin<kThreads>(s.bins, wanted, s.sums[0], &s.found);
    } else {
      __syncthreads();
      uint32_t* total = cluster.map_shared_rank(s.total, 0);
      for (int i = threadIdx.x; i < kBins; i += kThreads) {
        if (s.bins[i] != 0) atomicAdd(&total[i], s.bins[i]);
      }
      cluster.sync();
      if (rank == 0) find_bin<kThreads>(s.total, wanted, s.sums[0], &s.found);
      cluster.sync();
      here = *cluster.map_shared_rank(&s.found, 0);
    }
    prefix |= here.bin << shift;
    mask |= digit_mask(pass) << shift;
    wanted -= here.above;
    if (here.in_bin == wanted) break;  // all of the bin is chosen
    for (int i = threadIdx.x; i < kBins; i += kThreads) s.bins[i] = s.total[i] = 0;
    sync();
  }
  const bool all_equal = here.in_bin == wanted;
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const uint32_t digits = ranks[i] & mask;
    if (ranks[i] != 0 && digits >= prefix) {
      const int column = i / 4 * 4 * kThreads + static_cast<int>(threadIdx.x) * 4 + i % 4;
      uint32_t* bits = digits > prefix || all_equal ? above_bits : equal_bits;
      atomicOr(&bits[column / 32], 1u << column % 32);
    }
  }
  __syncthreads();
  // A thread a word. Counts of both kinds of columns before it, in this block and in lower ones.
  const bool mine = threadIdx.x < kWords;
  uint32_t chosen = mine ? above_bits[threadIdx.x] : 0;
  uint32_t equal = mine ? equal_bits[threadIdx.x] : 0;
  uint32_t chosen_total, equal_total;
  uint32_t chosen_before = scan_block<kThreads>(__popc(chosen), s.sums[0], chosen_total);
  uint32_t equal_before = scan_block<kThreads>(__popc(equal), s.sums[1], equal_total);
  if constexpr (!kAlone) {
    if (threadIdx.x == 0) {
      s.counts[0] = chosen_total;
      s.counts[1] = equal_total;
    }
    cluster.sync();
    for (int other = 0; other < rank; ++other) {
      const uint32_t* counts = cluster.map_shared_rank(s.counts, other);
      chosen_before += counts[0];
      equal_before += counts[1];
    }
    cluster.sync();  // nobody leaves while its counts are read
  }
  // The `wanted` lowest of the equal ones.
  uint32_t place = chosen_before + (all_equal ? 0 : min(equal_before, wanted));
  uint32_t ties = all_equal || equal_before >= wanted ? 0 : wanted - equal_before;
  const int base = first - start + static_cast<int>(threadIdx.x) * 32;
  uint32_t rest = chosen | equal;
  while (rest != 0) {
    const int bit = __ffs(rest) - 1;
    rest &= rest - 1;
    const bool tie = (equal >> bit & 1) != 0;
    if (tie && ties == 0) continue;
    ties -= tie ? 1 : 0;
    out[place++] = base + bit;
  }
#endif
}

template <int kItems, bool kAlone>
void start(const cpu::TopkPerRow& p, int blocks, const Launch& launch) {
  const auto kernel = topk_cluster_kernel<kItems, kAlone>;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(p.tokens * blocks));
  config.blockDim = dim3(kThreads);
  config.stream = launch.stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(blocks);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = kAlone ? 0 : 1;
  if (blocks > 8) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
          "topk_cluster's cluster size");
  }
  check(cudaLaunchKernelEx(&config, kernel, p), "topk_cluster");
}

}  // namespace

Reason fits_cluster(const cpu::TopkPerRow& p, const Launch& launch) {
  if (launch.arch != 90) return "topk: arch is not 90";
  if (reinterpret_cast<std::uintptr_t>(p.logits) % 16 != 0 || p.logits_stride % 4 != 0) {
    return "topk: rows are not aligned to 16 bytes";
  }
  if (p.logits_stride > int64_t{kMostBlocks} * 32 * kThreads) return "topk: rows are too long";
  if (p.tokens > (int64_t{1} << 26)) return "topk: too many rows";
  return {};
}

void run_cluster(const cpu::TopkPerRow& p, const Launch& launch) {
  // As many blocks a row as the row needs, or more while multiprocessors would stand idle.
  constexpr int kMost = 32 * kThreads;
  int blocks = 1;
  while (int64_t{blocks} * kMost < p.logits_stride) blocks *= 2;
  while (blocks < kMostBlocks && p.tokens * blocks * 2 <= launch.multiprocessors &&
         p.logits_stride > int64_t{blocks} * 8 * kThreads) {
    blocks *= 2;
  }
  const int64_t part = (p.logits_stride + blocks - 1) / blocks;
  if (blocks == 1) {
    if (part <= 8 * kThreads) return start<8, true>(p, 1, launch);
    if (part <= 16 * kThreads) return start<16, true>(p, 1, launch);
    return start<32, true>(p, 1, launch);
  }
  if (part <= 8 * kThreads) return start<8, false>(p, blocks, launch);
  if (part <= 16 * kThreads) return start<16, false>(p, blocks, launch);
  return start<32, false>(p, blocks, launch);
}

}  // namespace warmgate::kernels::cuda::topk
