// The selection of one row by a cluster (topk.md), step by step. Device code of topk_cluster.cu and
// topk_rows.cu.
#pragma once

#include <cooperative_groups.h>

#include "kernels/cuda/indexer/topk_shared.cuh"

namespace warmgate::kernels::cuda::topk {

namespace cg = cooperative_groups;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// kItems: scores a thread, a multiple of 4. Thread t holds columns 4·(i·kThreads + t) + 0..3 of its
// block's part. Before a row begins reset() has been called and a barrier passed; choose_…() and
// write() leave everything so for the next one.
template <int kItems, bool kAlone>
struct Selection {
  static constexpr int kPart = kItems * kThreads;
  static constexpr int kWords = kPart / 32;
  static_assert(kWords <= kThreads && kBins == 4 * kThreads);

  Shared& s;
  uint32_t* above_bits;  // [kWords]: chosen columns, a bit each
  uint32_t* equal_bits;  // [kWords]: those that equal the last chosen one
  cg::cluster_group cluster;
  int rank, blocks;
  const float* row;  // column 0 of the first part; parts begin at multiples of four columns
  int begin, end;    // of the row's range, from there
  float x[kItems];   // NaN outside the range
  uint32_t lowest;   // no candidate ranks below

  __device__ __forceinline__ void sync() {
    if constexpr (kAlone) {
      __syncthreads();
    } else {
      cluster.sync();
    }
  }
  template <class T>
  __device__ __forceinline__ T* at(T* shared, int block) {
    return kAlone ? shared : cluster.map_shared_rank(shared, block);
  }
  __device__ __forceinline__ int column(int i) const {
    return rank * kPart + i / 4 * 4 * kThreads + static_cast<int>(threadIdx.x) * 4 + i % 4;
  }
  __device__ __forceinline__ uint32_t rank_at(int c) const {
    return c >= begin && c < end ? rank_of(row[c]) : 0;
  }
  __device__ __forceinline__ void clear_bins() {
    reinterpret_cast<uint4*>(s.bins)[threadIdx.x] = uint4{0, 0, 0, 0};
    if constexpr (!kAlone) reinterpret_cast<uint4*>(s.total)[threadIdx.x] = uint4{0, 0, 0, 0};
  }
  __device__ __forceinline__ void reset() {
    clear_bins();
    if (threadIdx.x < kWords) above_bits[threadIdx.x] = equal_bits[threadIdx.x] = 0;
    if (threadIdx.x == 0) s.candidates = s.highest = 0;
  }
  __device__ __forceinline__ void choose(int at_column, bool tie) {
    const int block = at_column / kPart, bit = at_column % kPart;
    atomicOr(at(tie ? equal_bits : above_bits, block) + bit / 32, 1u << bit % 32);
  }

  // `from`: the row, or a copy of it.
  __device__ __forceinline__ void load(const float* from) {
    const float nan = __uint_as_float(0x7FC00000u);
#pragma unroll
    for (int i = 0; i < kItems; i += 4) {
      const int c = column(i), tile = c - static_cast<int>(threadIdx.x) * 4;
      if (tile >= begin && tile + 4 * kThreads <= end) {  // the same for all threads
        const float4 v = *reinterpret_cast<const float4*>(from + c);
        x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
      } else {
        float4 v = {nan, nan, nan, nan};
        if (c < end) v = *reinterpret_cast<const float4*>(from + c);
        x[i] = c >= begin && c < end ? v.x : nan;
        x[i + 1] = c + 1 >= begin && c + 1 < end ? v.y : nan;
        x[i + 2] = c + 2 >= begin && c + 2 < end ? v.z : nan;
        x[i + 3] = c + 3 >= begin && c + 3 < end ? v.w : nan;
      }
    }
  }

  // The cluster's bin from the blocks' bins, for all blocks.
  __device__ __forceinline__ Found find(uint32_t wanted) {
    __syncthreads();
    if constexpr (kAlone) {
      return find_bin<kThreads>(s.bins, wanted, s.sums[0], &s.found);
    } else {
      uint32_t* total = at(s.total, 0);
      for (int i = threadIdx.x; i < kBins; i += kThreads) {
        if (s.bins[i] != 0) atomicAdd(&total[i], s.bins[i]);
      }
      sync();
      if (rank == 0) find_bin<kThreads>(s.total, wanted, s.sums[0], &s.found);
      sync();
      return *at(&s.found, 0);
    }
  }

  // Of a thread's scores the largest of each of one, two or four groups: twice as many groups as
  // scores are wanted, if there are so many. Where topk groups reach a score, topk
  // scores do: so none that is chosen lies below the bin of the topk-th largest group.
  __device__ __forceinline__ Found bound(uint32_t topk) {
    float largest[4];
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      largest[g] = x[g];
#pragma unroll
      for (int i = g + 4; i < kItems; i += 4) largest[g] = fmaxf(largest[g], x[i]);
    }
    const auto threads = static_cast<uint32_t>(min(blocks * kThreads, (end - begin) / 4));
    const int groups = threads >= 2 * topk ? 1 : threads >= topk ? 2 : 4;
    if (groups < 4) {
      largest[0] = fmaxf(largest[0], largest[1]);
      largest[1] = fmaxf(largest[2], largest[3]);
    }
    if (groups == 1) largest[0] = fmaxf(largest[0], largest[1]);
    uint32_t highest = 0;
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      if (g < groups && largest[g] == largest[g]) {
        const uint32_t ranked = rank_of(largest[g]);
        highest = max(highest, ranked);
        atomicAdd(&s.bins[ranked >> 21], 1u);
      }
    }
    highest = __reduce_max_sync(0xFFFFFFFFu, highest);
    if (threadIdx.x % 32 == 0) atomicMax(at(&s.highest, 0), highest);
    return find(topk);
  }

  // What lies above the bound; false if that is too much for the list, or no bound was found.
  __device__ __forceinline__ bool list_candidates(uint32_t topk, const float* from) {
    const Found here = bound(topk);
    clear_bins();
    uint32_t mask = 0;
    if (here.in_bin != 0) {
      lowest = here.bin << 21;
      const float edge = edge_of(here.bin);
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        if (x[i] >= edge) mask |= 1u << i;
      }
      const int lane = threadIdx.x % 32;
      const uint32_t own = __popc(mask);
      uint32_t inclusive = own;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const uint32_t other = __shfl_up_sync(0xFFFFFFFFu, inclusive, step);
        if (lane >= step) inclusive += other;
      }
      uint32_t place = 0;
      if (lane == 31 && inclusive != 0) place = atomicAdd(at(&s.candidates, 0), inclusive);
      place = __shfl_sync(0xFFFFFFFFu, place, 31) + inclusive - own;
      uint2* list = at(s.list, 0);
      while (mask != 0) {
        const int i = __ffs(mask) - 1;
        mask &= mask - 1;
        const int c = column(i);
        if (place < kMostCandidates) {
          list[place] = {__float_as_uint(from[c]), static_cast<uint32_t>(c)};
        }
        ++place;
      }
    }
    sync();
    return here.in_bin != 0 && *at(&s.candidates, 0) <= kMostCandidates;
  }

  // The first block, on the list: bins of one width between the lowest and the highest candidate,
  // then within the bin that was found.
  __device__ __forceinline__ void choose_from_list(uint32_t wanted) {
    constexpr int kEach = kMostCandidates / kThreads;
    uint32_t ranks[kEach], columns[kEach];
    const uint32_t candidates = s.candidates;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      ranks[i] = columns[i] = 0;
      const uint32_t place = i * kThreads + threadIdx.x;
      if (place < candidates) {
        const uint2 entry = s.list[place];
        ranks[i] = rank_of(__uint_as_float(entry.x));
        columns[i] = entry.y;
      }
    }
    // from..from+width; 0 is outside, as `lowest` is not 0.
    uint32_t from = lowest, width = s.highest - from;
    Found here{};
    while (true) {
      const int shift = max(21 - __clz(static_cast<int>(width)), 0);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (i * kThreads < candidates && ranks[i] - from <= width) {
          atomicAdd(&s.bins[(ranks[i] - from) >> shift], 1u);
        }
      }
      __syncthreads();
      here = find_bin<kThreads>(s.bins, wanted, s.sums[0], &s.found);
      clear_bins();
      from += here.bin << shift;
      width = (1u << shift) - 1;
      wanted -= here.above;
      if (here.in_bin == wanted || shift == 0) break;
      __syncthreads();
    }
    const bool all = here.in_bin == wanted;  // of the bin
    if (threadIdx.x == 0) {
      s.ties = all ? 0 : wanted;
      if constexpr (kAlone) s.candidates = s.highest = 0;
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (i * kThreads < candidates && ranks[i] >= from) {
        choose(static_cast<int>(columns[i]), ranks[i] - from <= width && !all);
      }
    }
  }

  // All blocks, reading everything again: many equal scores, more NaN than the bound allows, or
  // more candidates than the list holds. A barrier has passed since list_candidates().
  __device__ __forceinline__ void choose_from_all(uint32_t wanted) {
    const int first = rank * kPart + static_cast<int>(threadIdx.x);
    const int last = min((rank + 1) * kPart, end);
    uint32_t prefix = 0, mask = 0;
    Found here{};
    for (int pass = 0; pass < kPasses; ++pass) {
      for (int c = first; c < last; c += kThreads) {
        const uint32_t own = rank_at(c);
        if (own != 0 && (own & mask) == prefix) {
          atomicAdd(&s.bins[(own >> shift_of(pass)) & digit_mask(pass)], 1u);
        }
      }
      here = find(wanted);
      clear_bins();
      prefix |= here.bin << shift_of(pass);
      mask |= digit_mask(pass) << shift_of(pass);
      wanted -= here.above;
      if (here.in_bin == wanted) break;
      sync();
    }
    const bool all = here.in_bin == wanted;
    if (rank == 0 && threadIdx.x == 0) {
      s.ties = all ? 0 : wanted;
      if constexpr (kAlone) s.candidates = s.highest = 0;
    }
    for (int c = first; c < last; c += kThreads) {
      const uint32_t own = rank_at(c), digits = own & mask;
      if (own != 0 && digits >= prefix) choose(c, digits == prefix && !all);
    }
  }

  // The chosen columns in order: a thread a word of bits.
  __device__ __forceinline__ void write(int32_t* out) {
    const uint32_t most_ties = *at(&s.ties, 0);
    uint32_t chosen = 0, equal = 0;
    if (threadIdx.x < kWords) {
      chosen = above_bits[threadIdx.x];
      equal = equal_bits[threadIdx.x];
      above_bits[threadIdx.x] = equal_bits[threadIdx.x] = 0;
    }
    uint32_t total;
    const uint32_t before =
        scan_block<kThreads>(__popc(chosen) << 16 | __popc(equal), s.sums[1], total);
    uint32_t chosen_before = before >> 16, equal_before = before & 0xFFFFu;
    if constexpr (!kAlone) {
      if (threadIdx.x == 0) s.counts = total;
      sync();
      for (int other = 0; other < rank; ++other) {
        const uint32_t counts = *at(&s.counts, other);
        chosen_before += counts >> 16;
        equal_before += counts & 0xFFFFu;
      }
      sync();  // nobody leaves while its memory is read
    }
    uint32_t place = chosen_before + min(equal_before, most_ties);
    uint32_t ties = most_ties - min(equal_before, most_ties);
    const int first = rank * kPart - begin + static_cast<int>(threadIdx.x) * 32;
    uint32_t rest = chosen | equal;
    while (rest != 0) {
      const int bit = __ffs(rest) - 1;
      rest &= rest - 1;
      const bool tie = (equal >> bit & 1) != 0;
      if (tie && ties == 0) continue;
      ties -= tie ? 1 : 0;
      out[place++] = first + bit;
    }
  }
};

#endif

}  // namespace warmgate::kernels::cuda::topk
