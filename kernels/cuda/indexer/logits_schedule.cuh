// Who scores what. Queries go in groups that share keys; a group's keys are cut into tiles of 64.
// The tiles of all groups, one behind the other, are dealt out evenly: block b of G takes tiles
// total·b/G .. total·(b+1)/G-1, whatever the lengths, which only the device knows.
#pragma once

#include <stdint.h>

#include "kernels/cuda/indexer/logits_start.h"
#include "kernels/cuda/indexer/table.cuh"

namespace warmgate::kernels::cuda::logits {

/// Keys lo..hi-1 for `count` tokens from `first`.
struct Group {
  int first, count, lo, hi;
  __device__ int tiles() const { return (hi - lo + kTile - 1) / kTile; }
};

template <int kQueries, bool kPaged>
__device__ __forceinline__ Group group_of(const Params& p, int index) {
  Group out;
  if constexpr (kPaged) {
    const int request = index / p.groups_per_request;
    const int offset = index % p.groups_per_request * kQueries;
    out.first = request * p.next_n + offset;
    out.count = min(min(kQueries, p.next_n - offset), p.tokens - out.first);
  } else {
    out.first = index * kQueries;
    out.count = min(kQueries, p.tokens - out.first);
  }
  out.lo = 0x7FFFFFFF;
  out.hi = 0;
#pragma unroll
  for (int i = 0; i < kQueries; ++i) {
    if (i >= out.count) break;
    const int start = kPaged ? 0 : p.key_start[out.first + i];
    const int end = p.key_end[out.first + i];
    if (start >= end) continue;
    out.lo = min(out.lo, start);
    out.hi = max(out.hi, end);
  }
  if (out.lo > out.hi) out.lo = out.hi;
  return out;
}

/// A block's share: `count` tiles from tile `tile` of group `group`.
struct Share {
  int group, tile, count;
};

/// All threads call it; `sums` [warps of the block] and `share` are shared memory. Ends with a
/// barrier.
template <int kQueries, bool kPaged, int kThreads>
__device__ __forceinline__ void find_share(const Params& p, uint32_t* sums, Share* share) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int each = (p.groups + kThreads - 1) / kThreads;
  const int begin = min(static_cast<int>(threadIdx.x) * each, p.groups);
  const int end = min(begin + each, p.groups);
  uint32_t own = 0;
  for (int g = begin; g < end; ++g) own += group_of<kQueries, kPaged>(p, g).tiles();
  uint32_t inclusive = own;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_up_sync(0xFFFFFFFFu, inclusive, step);
    if (lane >= step) inclusive += other;
  }
  if (lane == 31) sums[warp] = inclusive;
  if (threadIdx.x == 0) share->count = 0;
  __syncthreads();
  uint32_t before = inclusive - own, total = 0;
  for (int i = 0; i < kThreads / 32; ++i) {
    before += i < warp ? sums[i] : 0;
    total += sums[i];
  }
  const uint32_t first =
      static_cast<uint32_t>(static_cast<uint64_t>(total) * blockIdx.x / gridDim.x);
  const uint32_t last =
      static_cast<uint32_t>(static_cast<uint64_t>(total) * (blockIdx.x + 1) / gridDim.x);
  if (first < last && before <= first && first < before + own) {
    for (int g = begin; g < end; ++g) {
      const uint32_t tiles = group_of<kQueries, kPaged>(p, g).tiles();
      if (first < before + tiles) {
        *share = {g, static_cast<int>(first - before), static_cast<int>(last - first)};
        break;
      }
      before += tiles;
    }
  }
  __syncthreads();
}

/// The share, a run of tiles of one group after the other.
template <int kQueries, bool kPaged>
struct Walk {
  const Params& p;
  int index, tile, left;
  Group group;
  int run = 0;  // tiles of `group` from `tile` on

  __device__ __forceinline__ Walk(const Params& params, const Share& share)
      : p(params), index(share.group), tile(share.tile), left(share.count) {}
  /// False when nothing is left.
  __device__ __forceinline__ bool next() {
    if (left == 0) return false;
    group = group_of<kQueries, kPaged>(p, index);
    while (group.tiles() == 0) group = group_of<kQueries, kPaged>(p, ++index);
    run = min(group.tiles() - tile, left);
    return true;
  }
  __device__ __forceinline__ void done() {
    left -= run;
    tile = 0;
    ++index;
  }
  /// The first key of tile `t`. Gathered keys: the last tile is moved back so that all its rows
  /// exist; those before row 0 read as zeros.
  __device__ __forceinline__ int first_key(int t) const {
    const int key = group.lo + t * kTile;
    return kPaged ? key : min(key, group.hi - kTile);
  }
};

}  // namespace warmgate::kernels::cuda::logits
