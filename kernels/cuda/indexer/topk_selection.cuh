// The selection of one row by a cluster (topk.md), step by step. Device code of topk_cluster.cu.
#pragma once

#include <cooperative_groups.h>

#include "kernels/cuda/indexer/topk_block.cuh"

namespace warmgate::kernels::cuda::topk {

namespace cg = cooperative_groups;

constexpr int kThreads = 512;  // of topk_cluster.cu
constexpr int kWarps = kThreads / 32;
constexpr int kMostBlocks = 16;

constexpr int kMostCandidates = 2048;
constexpr int kMaxima = 4;  // a thread

// What blocks of a cluster tell each other; some is used in the first block only.
struct Shared {
  uint32_t bins[kBins];
  uint32_t total[kBins];
  uint32_t sums[2][kWarps];
  uint32_t counts[2];  // chosen for sure, equal to the last one
  uint32_t candidates;
  uint32_t ties;  // how many of the equal ones are chosen
  Found found;
  uint2 list[kMostCandidates];  // rank, column
};

// kItems: scores a thread, a multiple of 4. Thread t holds columns 4·(i·kThreads + t) + 0..3 of its
// block's part.
template <int kItems, bool kAlone>
struct Selection {
  static constexpr int kPart = kItems * kThreads;
  static constexpr int kWords = kPart / 32;

  Shared& s;
  uint32_t* above_bits;
  uint32_t* equal_bits;
  cg::cluster_group cluster;
  int rank, blocks;
  const float* row;  // column 0 of the first part; parts begin at multiples of four columns
  int begin, end;    // of the row's range, from there
  float x[kItems];   // NaN outside the range

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
    for (int i = threadIdx.x; i < kBins; i += kThreads) s.bins[i] = s.total[i] = 0;
  }
  __device__ __forceinline__ void choose(int at_column, bool tie) {
    const int block = at_column / kPart, bit = at_column % kPart;
    atomicOr(at(tie ? equal_bits : above_bits, block) + bit / 32, 1u << bit % 32);
  }

  __device__ __forceinline__ void load() {
    const float nan = __uint_as_float(0x7FC00000u);
#pragma unroll
    for (int i = 0; i < kItems; i += 4) {
      const int c = column(i);
      float4 v = {nan, nan, nan, nan};
      if (c + 3 >= begin && c < end) v = __ldg(reinterpret_cast<const float4*>(row + c));
      if (c < begin || c + 4 > end) {
        if (c < begin || c >= end) v.x = nan;
        if (c + 1 < begin || c + 1 >= end) v.y = nan;
        if (c + 2 < begin || c + 2 >= end) v.z = nan;
        if (c + 3 < begin || c + 3 >= end) v.w = nan;
      }
      x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
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

  // Of a thread's scores the largest of each quarter. Where topk quarters reach a score, topk
  // scores do: so none that is chosen lies below the bin of the topk-th largest quarter. Lists what
  // lies above its edge; false if those are too many, or too few quarters hold a number.
  __device__ __forceinline__ bool list_candidates(uint32_t topk) {
#pragma unroll
    for (int q = 0; q < kMaxima; ++q) {
      float largest = x[q * (kItems / kMaxima)];
#pragma unroll
      for (int i = 1; i < kItems / kMaxima; ++i) {
        largest = fmaxf(largest, x[q * (kItems / kMaxima) + i]);
      }
      if (largest == largest) atomicAdd(&s.bins[rank_of(largest) >> 21], 1u);
    }
    const Found here = find(topk);
    if (here.in_bin == 0) return false;
    const float edge = edge_of(here.bin);
    uint32_t mask = 0;
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
      if (place < kMostCandidates) list[place] = {rank_of(row[c]), static_cast<uint32_t>(c)};
      ++place;
    }
    sync();
    return *at(&s.candidates, 0) <= kMostCandidates;
  }

  // The first block, on the list.
  __device__ __forceinline__ void choose_from_list(uint32_t wanted) {
    constexpr int kEach = kMostCandidates / kThreads;
    uint2 own[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const uint32_t at_list = i * kThreads + threadIdx.x;
      own[i] = at_list < s.candidates ? s.list[at_list] : uint2{0, 0};
    }
    uint32_t prefix = 0, mask = 0;
    Found here{};
    for (int pass = 0; pass < kPasses; ++pass) {
      clear_bins();
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (own[i].x != 0 && (own[i].x & mask) == prefix) {
          atomicAdd(&s.bins[(own[i].x >> shift_of(pass)) & digit_mask(pass)], 1u);
        }
      }
      __syncthreads();
      here = find_bin<kThreads>(s.bins, wanted, s.sums[0], &s.found);
      prefix |= here.bin << shift_of(pass);
      mask |= digit_mask(pass) << shift_of(pass);
      wanted -= here.above;
      if (here.in_bin == wanted) break;  // all of the bin is chosen
    }
    const bool all = here.in_bin == wanted;
    if (threadIdx.x == 0) s.ties = all ? 0 : wanted;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const uint32_t digits = own[i].x & mask;
      if (own[i].x != 0 && digits >= prefix) {
        choose(static_cast<int>(own[i].y), digits == prefix && !all);
      }
    }
  }

  // All blocks, reading everything again: many equal scores, or more NaN than the list's bound
  // allows.
  __device__ __forceinline__ void choose_from_all(uint32_t wanted) {
    uint32_t prefix = 0, mask = 0;
    Found here{};
    for (int pass = 0; pass < kPasses; ++pass) {
      clear_bins();
      sync();
      for (int c = rank * kPart + threadIdx.x; c < (rank + 1) * kPart; c += kThreads) {
        const uint32_t own = rank_at(c);
        if (own != 0 && (own & mask) == prefix) {
          atomicAdd(&s.bins[(own >> shift_of(pass)) & digit_mask(pass)], 1u);
        }
      }
      here = find(wanted);
      prefix |= here.bin << shift_of(pass);
      mask |= digit_mask(pass) << shift_of(pass);
      wanted -= here.above;
      if (here.in_bin == wanted) break;
      sync();  // all have read what find() found
    }
    const bool all = here.in_bin == wanted;
    if (rank == 0 && threadIdx.x == 0) s.ties = all ? 0 : wanted;
    for (int c = rank * kPart + threadIdx.x; c < (rank + 1) * kPart; c += kThreads) {
      const uint32_t own = rank_at(c), digits = own & mask;
      if (own != 0 && digits >= prefix) choose(c, digits == prefix && !all);
    }
  }

  // The chosen columns in order: a thread a word of bits.
  __device__ __forceinline__ void write(int32_t* out) {
    const uint32_t most_ties = *at(&s.ties, 0);
    const bool mine = threadIdx.x < kWords;
    const uint32_t chosen = mine ? above_bits[threadIdx.x] : 0;
    const uint32_t equal = mine ? equal_bits[threadIdx.x] : 0;
    uint32_t chosen_total, equal_total;
    uint32_t chosen_before = scan_block<kThreads>(__popc(chosen), s.sums[0], chosen_total);
    uint32_t equal_before = scan_block<kThreads>(__popc(equal), s.sums[1], equal_total);
    if constexpr (!kAlone) {
      if (threadIdx.x == 0) {
        s.counts[0] = chosen_total;
        s.counts[1] = equal_total;
      }
      sync();
      for (int other = 0; other < rank; ++other) {
        const uint32_t* counts = at(s.counts, other);
        chosen_before += counts[0];
        equal_before += counts[1];
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

}  // namespace warmgate::kernels::cuda::topk
