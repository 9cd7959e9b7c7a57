// What the kernels of logits_hopper.cuh are started with.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/cpu/indexer.h"

namespace warmgate::kernels::cuda::logits {

constexpr int kTile = 64;  // keys
constexpr int kHeads = 64;
constexpr int kDim = 128;  // bytes of a query's or key's row

struct Params {
  int tokens, groups;
  int next_n, groups_per_request;  // paged
  const float* w;
  const float* scales;       // prefill
  const int32_t* key_start;  // prefill
  const int32_t* key_end;    // prefill: columns; paged: context lengths
  cpu::Pages pages;
  cpu::BlockTable table;
  float* logits;
  int64_t stride;
};

/// How the two warpgroups share the tensor cores: as they come, or in turn.
enum class Pace { kFree, kInTurn };

/// q_map: rows of 128 bytes in boxes of kQueries·64; key_map: rows in boxes of 64, or pages of
/// them.
template <int kQueries, bool kPaged, Pace kPace>
void start_hopper(const Params& p, const CUtensorMap& q_map, const CUtensorMap& key_map, int blocks,
                  cudaStream_t stream);

}  // namespace warmgate::kernels::cuda::logits
