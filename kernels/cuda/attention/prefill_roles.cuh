// The parts that the four warpgroups of the sm_90a prefill kernel play; prefill_sm90.cu starts
// them.
//   gather   copies 64 rows at a time, first a tile's queries, then blocks of keys, into a ring
//   score    holds three quarters of the queries in registers; S = Q·Kᵀ, running softmax
//   sum (2)  each 256 channels: O = O·shrink + W·V, V being the keys where they lie; writes out
// What passes between them, and why so: sparse_prefill.md.
#pragma once

#include "kernels/cuda/attention/prefill_hopper.cuh"
#include "kernels/cuda/attention/prefill_kernels.h"

namespace warmgate::kernels::cuda::prefill {

constexpr int kRows = 64;  // of a slot: heads of a tile, keys of a block
constexpr int kRowBytes = 2 * kPrefillDim;
constexpr int kColumnBytes = 8192;  // 64 rows of 128 bytes, 128-byte swizzled: 64 channels
constexpr int kSlots = 3, kStages = 2;
constexpr float kLog2E = 1.4426950408889634F;

/// Channels of the queries, 16 at a time, that score keeps in registers; more do not fit.
constexpr int kHeld = 24, kSteps = kPrefillDim / 16;

struct Shared {
  alignas(1024) uint8_t slots[kSlots][kRows * kRowBytes];  // [8 columns][64 rows][64 channels]
  alignas(1024) uint8_t weights[kStages][kRows * 128];     // [64 heads][64 keys] bf16, swizzled
  alignas(1024) uint8_t queries[(kSteps - kHeld) / 4 * kColumnBytes];  // what score does not hold
  float shrink[kStages][kRows];         // factor of the sums before this block's weights are added
  float finish[kStages][kRows];         // with a token's last block: 1/denominator
  uint32_t keys[kSlots][2];             // bit r: row r of the slot is a key, else zeros
  Barrier full[kSlots], empty[kSlots];  // copies have landed; nobody reads any more
  Barrier weighed[kStages], summed[kStages];  // weights are there; have been used
};
constexpr int kFullArrivals = 128 + 1;  // copies of each thread, and `keys`
// All threads of a part arrive, not one lane a warp behind __syncwarp(): racecheck follows the
// former only, and it costs nothing (sparse_prefill.md).
constexpr int kEmptyArrivals = 256;  // both sums; score twice, for queries
constexpr int kWeighedArrivals = 128, kSummedArrivals = 256;

/// A place in a ring of kCount, and the parity of its present round.
template <int kCount>
struct Place {
  int at = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void next() {
    if (++at == kCount) at = 0, parity ^= 1;
  }
};

/// What one block of threads does in turn: tiles of 64 heads of tokens. length 0 behind the last.
struct Item {
  int token = 0, tile = 0, length = 0;
};
__device__ __forceinline__ Item item_at(const cpu::SparsePrefill& p, int items, int tiles,
                                        int index) {
  if (index >= items) return {};
  const int token = index / tiles;
  return {token, index - token * tiles, prefill_length(p, __ldg(p.lens + token))};
}

}  // namespace warmgate::kernels::cuda::prefill
