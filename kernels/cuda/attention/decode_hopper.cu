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

// Consumers, when their products are done.
template <bool kCluster>
__device__ __forceinline__ void finish(const DecodeParams& p, const Work& work, Shared& shared,
                                       const Parts& parts, int thread, uint32_t parity,
                                       const Sums& sums) {
  arrive(&shared.read);
  if constexpr (kCluster) {
    wait(&shared.factors, 0);
    wait(&shared.read, parity);
    leave_sums(shared, thread, sums);
    merge_cluster(p, work, shared, parts, thread);
  } else {
    write_output(p, work, shared, thread, sums);
    wait(&shared.read, parity);  // the next q overwrites what was read, the next factors these
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
      init_barrier(&shared.full[s], kProducers);
      init_barrier(&shared.empty[s], kConsumers);
    }
    init_barrier(&shared.weighed, kConsumers / 2);
    init_barrier(&shared.summed, kConsumers / 2);
    init_barrier(&shared.q_there, kConsumers);
    init_barrier(&shared.read, kConsumers);
    init_barrier(&shared.ends_there, kHeads * static_cast<uint32_t>(parts.cluster));
    init_barrier(&shared.factors, kHeads);
    fence_barrier_init();
  }
  if constexpr (kCluster) {
    cluster_sync();  // from now on shared memory is written from outside
  } else {
    __syncthreads();
  }
  let_next_start();
  wait_for_previous();  // what was before in the stream wrote what is read from here on

  // A block takes one unit after the other: keys of the next are fetched while the last one's
  // output is written. Blocks of clusters have one part each.
  const int step = kCluster ? count : static_cast<int>(gridDim.x);
  int before = 0;
  uint32_t parity = 0;
  // Each role ends in its own branch: the register budgets hold within one.
  const int role = __shfl_sync(~0u, thread / 128, 0);
  if (role == 0) {
    more_registers<kConsumerRegisters>();
    Sums sums;
    for (int i = static_cast<int>(blockIdx.x); i < count; i += step) {
      thread = opaque(thread);
      const Work work(p, parts, i);
      load_q(p, work, shared, thread, parity);
      consume_with_softmax<kCluster>(p, work, shared, parts, thread, before, sums);
      finish<kCluster>(p, work, shared, parts, thread, parity, sums);
      before += work.end - work.begin;
      parity ^= 1;
    }
  } else if (role == 1) {
    more_registers<kConsumerRegisters>();
    Sums sums;
    for (int i = static_cast<int>(blockIdx.x); i < count; i += step) {
      thread = opaque(thread);
      const Work work(p, parts, i);
      load_q(p, work, shared, thread, parity);
      consume(work, shared, thread - 128, before, sums);
      finish<kCluster>(p, work, shared, parts, thread, parity, sums);
      before += work.end - work.begin;
      parity ^= 1;
    }
  } else {
    fewer_registers<kProducerRegisters>();
    for (int i = static_cast<int>(blockIdx.x); i < count; i += step) {
      const Work work(p, parts, i);
      produce(p, work, shared, thread - kConsumers, before);
      before += work.end - work.begin;
      if constexpr (kCluster) {
        wait_cluster(&shared.ends_there, 0);
        find_factors(p, work, shared, parts, thread - kConsumers);
        merge_cluster(p, work, shared, parts, thread);
      }
    }
  }
#endif
}

cudaLaunchConfig_t configuration(std::int64_t blocks, unsigned cluster, cudaStream_t stream,
                                 cudaLaunchAttribute (&attributes)[2]) {
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {cluster, 1, 1};
  cudaLaunchConfig_t out{};
  out.gridDim = dim3(static_cast<unsigned>(blocks));
  out.blockDim = dim3(kThreads);
  out.dynamicSmemBytes = kSharedBytes;
  out.stream = stream;
  out.attrs = attributes;
  out.numAttrs = cluster > 1 ? 2 : 1;
  return out;
}

template <bool kCluster>
void allow() {
  check(cudaFuncSetAttribute(decode_kernel<kCluster>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(kSharedBytes)),
        "sparse_decode: shared memory");
  if constexpr (kCluster) {
    check(cudaFuncSetAttribute(decode_kernel<true>, cudaFuncAttributeNonPortableClusterSizeAllowed,
                               1),
          "sparse_decode: cluster size");
  }
}

template <bool kCluster>
void launch_decode(const cpu::SparseDecode& p, const Launch& launch, const Parts& parts) {
  allow<kCluster>();
  const std::int64_t count = decode_units(p) * parts.cluster * parts.groups;
  const std::int64_t most = kCluster ? count : std::max(1, launch.multiprocessors);
  cudaLaunchAttribute attributes[2] = {};
  const cudaLaunchConfig_t config = configuration(
      std::min(count, most), static_cast<unsigned>(parts.cluster), launch.stream, attributes);
  check(cudaLaunchKernelEx(&config, decode_kernel<kCluster>, decode_params(p), parts,
                           static_cast<int>(count)),
        "sparse_decode (Hopper)");
}

}  // namespace

bool places_large_clusters() {
  static const bool places = [] {
    allow<true>();
    cudaLaunchAttribute attributes[2] = {};
    const cudaLaunchConfig_t config =
        configuration(kMostInCluster, kMostInCluster, nullptr, attributes);
    int clusters = 0;
    const cudaError_t error =
        cudaOccupancyMaxActiveClusters(&clusters, decode_kernel<true>, &config);
    if (error != cudaSuccess) cudaGetLastError();  // then it cannot
    return error == cudaSuccess && clusters > 0;
  }();
  return places;
}

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
