// Index lists without scores: the short context's identity, and slots through the block table.
#include "kernels/cuda/indexer/table.cuh"
#include "kernels/cuda/indexer/topk.h"
#include "kernels/cuda/indexer/topk_paths.h"

namespace warmgate::kernels::cuda {

namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads)
    fill_short_context_kernel(const cpu::FillShortContext p) {
  const int64_t token = blockIdx.x;
  const int64_t entries = (p.positions[token] + 1) / p.ratio;
  int32_t* out = p.indices + token * p.indices_stride;
  for (int64_t i = threadIdx.x; i < p.topk; i += kThreads) {
    out[i] = i < entries ? static_cast<int32_t>(i) : -1;
  }
}

__global__ void __launch_bounds__(kThreads)
    global_topk_indices_kernel(const cpu::GlobalTopkIndices p) {
  __shared__ int32_t sums[kThreads / 32];
  const int64_t token = blockIdx.x;
  const int64_t request = p.token_to_req[token];
  const int32_t* local = p.local + token * p.width;
  int32_t* global = p.global + token * p.width;
  int32_t count = 0;
  for (int64_t i = threadIdx.x; i < p.width; i += kThreads) {
    const int32_t entry = local[i];
    global[i] = entry >= 0 ? static_cast<int32_t>(slot_of(p.table, request, entry)) : -1;
    count += entry >= 0 ? 1 : 0;
  }
  count = __reduce_add_sync(0xFFFFFFFFu, count);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = count;
  __syncthreads();
  if (threadIdx.x == 0) {
    int32_t all = 0;
    for (const int32_t sum : sums) all += sum;
    p.lens[token] = p.is_valid[token] != 0 ? all : 0;
  }
}

constexpr std::int64_t kMostRows = 0x7FFFFFFF;

}  // namespace

Reason can_run(const cpu::FillShortContext& p, const Launch& launch) {
  if (launch.arch < 80) return "fill_short_context: needs arch >= 80";
  if (p.ratio <= 0) return "fill_short_context: ratio is not positive";
  if (p.tokens > kMostRows) return "fill_short_context: more than 2^31 - 1 tokens";
  return {};
}
void run(const cpu::FillShortContext& p, const Launch& launch) {
  if (p.tokens <= 0 || p.topk <= 0) return;
  fill_short_context_kernel<<<static_cast<unsigned>(p.tokens), kThreads, 0, launch.stream>>>(p);
  check_launch("fill_short_context");
}

Reason can_run(const cpu::GlobalTopkIndices& p, const Launch& launch) {
  if (launch.arch < 80) return "global_topk_indices: needs arch >= 80";
  if (p.tokens > kMostRows) return "global_topk_indices: more than 2^31 - 1 tokens";
  return {};
}
void run(const cpu::GlobalTopkIndices& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  global_topk_indices_kernel<<<static_cast<unsigned>(p.tokens), kThreads, 0, launch.stream>>>(p);
  check_launch("global_topk_indices");
}

Reason can_run(const cpu::TopkPerRow& p, const Launch& launch) {
  if (launch.arch < 80) return "topk_per_row: needs arch >= 80";
  if (p.tokens > kMostRows || p.logits_stride > kMostRows || p.topk > kMostRows) {
    return "topk_per_row: more than 2^31 - 1 rows or columns";
  }
  return {};
}
void run(const cpu::TopkPerRow& p, const Launch& launch) {
  if (p.tokens <= 0 || p.topk <= 0) return;
  if (!topk::fits_cluster(p, launch)) {
    topk::run_cluster(p, launch);
  } else {
    topk::run_general(p, launch);
  }
}

}  // namespace warmgate::kernels::cuda
