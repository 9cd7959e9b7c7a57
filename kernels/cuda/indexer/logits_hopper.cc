// Chooses an instantiation of logits_hopper.cuh and describes its inputs to the copy engine.
#include <cuda.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/cuda/indexer/logits_paths.h"
#include "kernels/cuda/indexer/logits_start.h"

namespace warmgate::kernels::cuda::logits {

namespace {

constexpr std::int64_t kMost = 0x7FFFFFFF;

// Found through the runtime, so that nothing links libcuda.
auto encode_function() {
  static const auto function = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                           cudaEnableDefault, &found),
          "cuTensorMapEncodeTiled");
    if (entry == nullptr) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  }();
  return function;
}

// Rows of 128 bytes, 128-byte swizzled, a box of `box_rows`; `pages` > 0: pages of 64 rows.
CUtensorMap row_map(const void* base, std::int64_t rows, int box_rows, std::int64_t page_stride = 0,
                    std::int64_t pages = 0) {
  CUtensorMap map{};
  const cuuint64_t dims[3] = {128, static_cast<cuuint64_t>(rows), static_cast<cuuint64_t>(pages)};
  const cuuint64_t strides[2] = {128, static_cast<cuuint64_t>(page_stride)};
  const cuuint32_t box[3] = {128, static_cast<cuuint32_t>(box_rows), 1};
  const cuuint32_t steps[3] = {1, 1, 1};
  const CUresult result = encode_function()(
      &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, pages > 0 ? 3 : 2, const_cast<void*>(base), dims,
      strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw std::runtime_error("cuTensorMapEncodeTiled: error " + std::to_string(result));
  }
  return map;
}

bool aligned(const void* pointer, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

template <class P>
Reason fits(const P& p, const Launch& launch) {
  if (launch.arch != 90) return "indexer logits: arch is not 90";
  if (p.format != cpu::IndexFormat::kFp8) return "indexer logits: keys are not fp8";
  if (p.heads != kHeads) return "indexer logits: heads are not 64";
  if (!aligned(p.q, 16) || !aligned(p.w, 8)) return "indexer logits: q or w is not aligned";
  if (p.tokens > kMost / kHeads) return "indexer logits: too many tokens";
  if (p.logits_stride > kMost) return "indexer logits: too many columns";
  return {};
}

template <class P>
Params common(const P& p) {
  Params out{};
  out.tokens = static_cast<int>(p.tokens);
  out.w = p.w;
  out.logits = p.logits;
  out.stride = p.logits_stride;
  return out;
}

}  // namespace

Reason fits_hopper(const cpu::MqaLogitsPrefill& p, const Launch& launch) {
  if (!aligned(p.values, 16) || !aligned(p.scales, 4)) return "indexer logits: keys not aligned";
  if (p.logits_stride <= 0) return "indexer logits: no columns";
  return fits(p, launch);
}

Reason fits_hopper(const cpu::MqaLogitsPaged& p, const Launch& launch) {
  if (p.pages.rows != kTile || p.table.page_rows != kTile) {
    return "indexer logits: pages of other than 64 rows";
  }
  if (!aligned(p.pages.base, 16) || p.pages.stride % 16 != 0 || p.pages.stride <= 0) {
    return "indexer logits: pages not aligned";
  }
  return fits(p, launch);
}

void run_hopper(const cpu::MqaLogitsPrefill& p, const Launch& launch) {
  constexpr int kQueries = 4;
  Params params = common(p);
  params.groups = (params.tokens + kQueries - 1) / kQueries;
  params.scales = reinterpret_cast<const float*>(p.scales);
  params.key_start = p.key_start;
  params.key_end = p.key_end;
  const CUtensorMap q_map = row_map(p.q, p.tokens * kHeads, kQueries * kHeads);
  const CUtensorMap key_map = row_map(p.values, std::max<std::int64_t>(p.logits_stride, 1), kTile);
  const int blocks = launch.multiprocessors;
  start_hopper<4, false, Pace::kInTurn>(params, q_map, key_map, blocks, launch.stream);
}

void run_hopper(const cpu::MqaLogitsPaged& p, const Launch& launch) {
  Params params = common(p);
  const std::int64_t together = std::min(p.next_n, p.tokens);
  const int queries = together == 1 ? 1 : together == 2 ? 2 : 4;
  const std::int64_t requests = (p.tokens + p.next_n - 1) / p.next_n;
  params.next_n = static_cast<int>(std::min(p.next_n, kMost));
  params.groups_per_request = static_cast<int>((together + queries - 1) / queries);
  params.groups = static_cast<int>(requests) * params.groups_per_request;
  params.key_end = p.context_lens;
  params.pages = p.pages;
  params.table = p.table;
  const CUtensorMap q_map = row_map(p.q, p.tokens * kHeads, queries * kHeads);
  // The pool's size is not known here; no pool is larger than this.
  const std::int64_t pages = std::min((std::int64_t{1} << 38) / p.pages.stride, kMost);
  const CUtensorMap key_map = row_map(p.pages.base, kTile, kTile, p.pages.stride, pages);
  const int blocks = launch.multiprocessors;
  if (queries == 1) {
    start_hopper<1, true, Pace::kFree>(params, q_map, key_map, blocks, launch.stream);
  } else if (queries == 2) {
    start_hopper<2, true, Pace::kFree>(params, q_map, key_map, blocks, launch.stream);
  } else {
    start_hopper<4, true, Pace::kInTurn>(params, q_map, key_map, blocks, launch.stream);
  }
}

}  // namespace warmgate::kernels::cuda::logits
