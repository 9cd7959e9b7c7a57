// The launch of one instantiation; each is a file of its own, so that they compile side by side.
#pragma once

#include "kernels/cuda/indexer/logits_hopper.cuh"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda::logits {

template <int kQueries, bool kPaged, Pace kPace>
void start_hopper(const Params& p, const CUtensorMap& q_map, const CUtensorMap& key_map, int blocks,
                  cudaStream_t stream) {
  const auto kernel = logits_hopper_kernel<kQueries, kPaged, kPace>;
  constexpr int kBytes = sizeof(Shared<kQueries>) + 1024;
  static_assert(kBytes <= 227 * 1024);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
        "logits_hopper's shared memory");
  kernel<<<static_cast<unsigned>(blocks), kThreads, kBytes, stream>>>(p, q_map, key_map);
  check_launch("logits_hopper");
}

}  // namespace warmgate::kernels::cuda::logits
