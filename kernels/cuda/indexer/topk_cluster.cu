// A cluster a row, each block a part of it, read once into registers (topk.md).
#include "kernels/cuda/indexer/topk_paths.h"
#include "kernels/cuda/indexer/topk_selection.cuh"

namespace warmgate::kernels::cuda::topk {

namespace {

template <int kItems, bool kAlone>
__global__ void __launch_bounds__(kThreads, 2) topk_cluster_kernel(const cpu::TopkPerRow p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  using Row = Selection<kItems, kAlone>;
  __shared__ Shared s;
  __shared__ uint32_t above_bits[Row::kWords], equal_bits[Row::kWords];
  cg::cluster_group cluster = cg::this_cluster();
  const int blocks = kAlone ? 1 : static_cast<int>(cluster.num_blocks());
  const int rank = kAlone ? 0 : static_cast<int>(cluster.block_rank());
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
  Row select{s,
             above_bits,
             equal_bits,
             cluster,
             rank,
             blocks,
             p.logits + token * p.logits_stride + start / 4 * 4,
             start % 4,
             start % 4 + count,
             {},
             0};
  select.load(select.row);
  select.reset();
  select.sync();
  const auto topk = static_cast<uint32_t>(p.topk);
  if (select.list_candidates(topk, select.row)) {
    if (rank == 0) select.choose_from_list(topk);
  } else {
    select.choose_from_all(topk);
  }
  select.sync();
  select.write(out);
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
    return run_rows(p, launch);
  }
  if (part <= 8 * kThreads) return start<8, false>(p, blocks, launch);
  if (part <= 16 * kThreads) return start<16, false>(p, blocks, launch);
  return start<32, false>(p, blocks, launch);
}

}  // namespace warmgate::kernels::cuda::topk
