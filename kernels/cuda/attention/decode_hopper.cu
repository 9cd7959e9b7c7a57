// Sparse decode on Hopper: a block of 512 threads takes 64 heads of a token and a part of its keys;
// the blocks of a cluster merge their parts. sparse_decode.md describes it.
#include <algorithm>

#include "kernels/cuda/attention/sparse_decode_output.cuh"
#include "kernels/cuda/attention/sparse_decode_paths.h"
#include "kernels/cuda/attention/sparse_decode_producer.cuh"

namespace warmgate::kernels::cuda {
namespace {

using namespace decode;

constexpr std::size_t kSharedBytes = sizeof(Shared) + 1024;  // room to align

template <bool kCluster>
__device__ __forceinline__ void finish(const DecodeParams& p, const Work& work, Shared& shared,
                                       const Parts& parts, int thread, const Sums& sums) {
  named_sync(kConsumersMeet, kConsumers);
  if constexpr (kCluster) {
    if (work.begin < work.end) leave_sums(shared, thread, sums);
    merge_cluster(p, work, shared, parts, thread);
  } else {
    write_output(p, work, shared, thread, sums);
    named_sync(kConsumersMeet, kConsumers);  // the next q overwrites what was read
  }
}

// The same, but the compiler does not know: else it keeps every address that depends on the thread
// alone in registers from one unit to the next, and spills.
[[maybe_unused]] __device__ __forceinline__ int opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

template <bool kCluster>
__global__ void __launch_bounds__(kThreads, 1)
    decode_kernel(const __grid_constant__ DecodeParams p, const __grid_constant__ Parts parts,
                  const int count) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint8_t raw_shared[];
  const uint32_t misaligned = shared_address(raw_shared) % 1024;
  Shared& shared = *reinterpret_cast<Shared*>(raw_shared + (1024 - misaligned) % 1024);
  int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    for (int s = 0; s < kStages; ++s) {
      init_barrier(&shared.full[s], kProducers / 32);
      init_barrier(&shared.empty[s], kConsumers / 32);
    }
    fence_barrier_init();
  }
  __syncthreads();
  let_next_start();
  wait_for_previous();  // what was before in the stream wrote what is read from here on

  // A block takes one unit after the other: keys of the next are fetched while the last one's
  // output is written. Blocks of clusters have one part each.
  const int step = kCluster ? count : static_cast<int>(gridDim.x);
  int before = 0;
  // Each role ends in its own branch: the register budgets hold within one.
  const int role = __shfl_sync(~0u, thread / 128, 0);
  if (role == 0) {
    more_registers<kConsumerRegisters>();
    Sums sums;
    for (int i = static_cast<int>(blockIdx.x); i < count; i += step) {
      thread = opaque(thread);
      const Work work(p, parts, i);
      load_q(p, work, shared, thread);
      consume_with_softmax(p, work, shared, thread, before, sums);
      finish<kCluster>(p, work, shared, parts, thread, sums);
      before += work.end - work.begin;
    }
  } else if (role == 1) {
    more_registers<kConsumerRegisters>();
    Sums sums;
    for (int i = static_cast<int>(blockIdx.x); i < count; i += step) {
      thread = opaque(thread);
      const Work work(p, parts, i);
      load_q(p, work, shared, thread);
      consume(work, shared, thread - 128, before, sums);
      finish<kCluster>(p, work, shared, parts, thread, sums);
      before += work.end - work.begin;
    }
  } else {
    fewer_registers<kProducerRegisters>();
    for (int i = static_cast<int>(blockIdx.x); i < count; i += step) {
      const Work work(p, parts, i);
      produce(p, work, shared, thread - kConsumers, before);
      before += work.end - work.begin;
      if constexpr (kCluster) merge_cluster(p, work, shared, parts, thread);
    }
  }
#endif
}

template <bool kCluster>
void launch_decode(const cpu::SparseDecode& p, const Launch& launch, const Parts& parts) {
  check(cudaFuncSetAttribute(decode_kernel<kCluster>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(kSharedBytes)),
        "sparse_decode: shared memory");
  const std::int64_t count = decode_units(p) * parts.cluster * parts.groups;
  const std::int64_t most = kCluster ? count : std::max(1, launch.multiprocessors);
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {static_cast<unsigned>(parts.cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(std::min(count, most)));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = kSharedBytes;
  config.stream = launch.stream;
  config.attrs = attributes;
  config.numAttrs = kCluster ? 2 : 1;
  check(cudaLaunchKernelEx(&config, decode_kernel<kCluster>, decode_params(p), parts,
                           static_cast<int>(count)),
        "sparse_decode (Hopper)");
}

}  // namespace

void run_hopper_decode(const cpu::SparseDecode& p, const Launch& launch, const DecodeSplit& split) {
  if (p.tokens == 0 || p.heads == 0) return;
  if (split.cluster == 1) return launch_decode<false>(p, launch, {});
  Parts parts{split.cluster, split.groups};
  if (split.groups > 1) {
    const std::int64_t count = decode_units(p) * split.groups;
    parts.sums = static_cast<float*>(launch.scratch);
    parts.tops = parts.sums + count * kHeads * kDim;
    parts.totals = parts.tops + count * kHeads;
  }
  launch_decode<true>(p, launch, parts);
  if (split.groups > 1) {
    combine_decode(p, launch, split.groups, parts.sums, parts.tops, parts.totals);
  }
}

}  // namespace warmgate::kernels::cuda
