// Sparse prefill attention with wgmma: one persistent block of threads a multiprocessor, a tile of
// 64 heads of a token at a time, four warpgroups with a part each (prefill_roles.cuh). How it
// works, its floor and its history: sparse_prefill.md.
#include <algorithm>

#include "kernels/cuda/attention/prefill_gather.cuh"
#include "kernels/cuda/attention/prefill_score.cuh"
#include "kernels/cuda/attention/prefill_sum.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kThreads = 512;
// Registers a thread of each part; together the whole file of 65536.
constexpr int kGather = 24, kScore = 168, kSum = 160;
static_assert(128 * (kGather + kScore + 2 * kSum) <= 65536);

__global__ void __launch_bounds__(kThreads, 1)
    sparse_prefill_sm90(const __grid_constant__ cpu::SparsePrefill p, const int items,
                        const int tiles) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t memory[];
  prefill::Shared& s = *reinterpret_cast<prefill::Shared*>(memory);
  if (threadIdx.x == 0) {
    for (int i = 0; i < prefill::kSlots; ++i) {
      init_barrier(&s.full[i], prefill::kFullArrivals);
      init_barrier(&s.empty[i], prefill::kEmptyArrivals);
    }
    for (int i = 0; i < prefill::kStages; ++i) {
      init_barrier(&s.weighed[i], prefill::kWeighedArrivals);
      init_barrier(&s.summed[i], prefill::kSummedArrivals);
    }
    fence_barrier_init();
  }
  __syncthreads();
  const int part = __shfl_sync(~0u, threadIdx.x / 128, 0);
  if (part == 0) {
    fewer_registers<kGather>();
    prefill::gather(p, s, items, tiles);
  } else if (part == 1) {
    more_registers<kScore>();
    prefill::score(p, s, items, tiles);
  } else {
    more_registers<kSum>();
    prefill::sum(p, s, part - 2, items, tiles);
  }
#endif
}

}  // namespace

void run_prefill_sm90(const cpu::SparsePrefill& p, const Launch& launch) {
  constexpr int kBytes = sizeof(prefill::Shared);
  static_assert(kBytes <= 227 * 1024);
  const int tiles = static_cast<int>((p.heads + kPrefillHeadTile - 1) / kPrefillHeadTile);
  const int items = static_cast<int>(p.tokens) * tiles;
  check(cudaFuncSetAttribute(sparse_prefill_sm90, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             kBytes),
        "sparse_prefill shared memory");
  const int blocks = std::min(items, launch.multiprocessors);
  sparse_prefill_sm90<<<blocks, kThreads, kBytes, launch.stream>>>(p, items, tiles);
  check_launch("sparse_prefill sm90");
}

}  // namespace warmgate::kernels::cuda
