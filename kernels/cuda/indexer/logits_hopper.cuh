// Scores through wgmma (logits.md). A block is two warpgroups that compute and a warp that loads.
// Keys are the 64 rows of a product, the heads of a group's queries its columns; the warpgroups
// take tiles in turn, so that one's products run while the other sums.
#pragma once

#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/indexer/logits_schedule.cuh"
#include "kernels/cuda/indexer/logits_sum.cuh"

namespace warmgate::kernels::cuda::logits {

constexpr int kThreads = 384;
constexpr int kTileBytes = kTile * kDim;
constexpr int kQueryBytes = kHeads * kDim;

template <int kQueries>
struct Shared {
  static constexpr int kStages = kQueries == 4 ? 14 : 20;
  alignas(1024) uint8_t queries[2][kQueries * kQueryBytes];
  alignas(1024) uint8_t keys[kStages][kTileBytes];
  alignas(128) float scales[kStages][kTile];
  Barrier full[kStages], empty[kStages], queries_full[2], queries_empty[2], turn[2];
  uint32_t sums[kThreads / 32];
  Share share;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

template <int kQueries, bool kPaged>
__device__ __forceinline__ void produce(const Params& p, const CUtensorMap& q_map,
                                        const CUtensorMap& key_map, Shared<kQueries>& s) {
  constexpr int kStages = Shared<kQueries>::kStages;
  constexpr uint32_t kBytes = kTileBytes + (kPaged ? kTile * 4 : 0);
  const int lane = threadIdx.x % 32;
  int stage = 0, phase = 0, run = 0;
  for (Walk<kQueries, kPaged> walk(p, s.share); walk.next(); walk.done(), ++run) {
    const int buffer = run % 2;
    wait(&s.queries_empty[buffer], (run / 2 & 1) ^ 1);
    if (lane == 0) {
      arrive_expecting(&s.queries_full[buffer], kQueries * kQueryBytes);
      copy_tensor(s.queries[buffer], &q_map, &s.queries_full[buffer], 0, walk.group.first * kHeads);
    }
    const int end = walk.tile + walk.run;
    // Page ids of the next 32 tiles, one a lane, loaded while the 32 before are used.
    const auto page = [&](int t) {
      return t < end ? static_cast<int>(page_of(p.table, walk.group.first / p.next_n,
                                                static_cast<int64_t>(t) * kTile))
                     : 0;
    };
    int pages = 0, next_pages = 0;
    if constexpr (kPaged) next_pages = page(walk.tile + lane);
    for (int i = 0; i < walk.run; ++i) {
      const int tile = walk.tile + i;
      int id = 0;
      if constexpr (kPaged) {
        if (i % 32 == 0) {
          pages = next_pages;
          next_pages = page(tile + 32 + lane);
        }
        id = __shfl_sync(0xFFFFFFFFu, pages, i % 32);
      }
      wait(&s.empty[stage], phase ^ 1);
      if (lane == 0) {
        arrive_expecting(&s.full[stage], kBytes);
        if constexpr (kPaged) {
          copy_tensor(s.keys[stage], &key_map, &s.full[stage], 0, 0, id);
          copy_bulk(s.scales[stage], p.pages.base + id * p.pages.stride + kTileBytes, kTile * 4,
                    &s.full[stage]);
        } else {
          copy_tensor(s.keys[stage], &key_map, &s.full[stage], 0, walk.first_key(tile));
        }
      }
      __syncwarp();
      if (++stage == kStages) {
        stage = 0;
        phase ^= 1;
      }
    }
  }
}

// What a thread writes of a run: the rows of its queries.
template <int kQueries>
struct Rows {
  static constexpr int kCount = kMine<kQueries>;
  float* row[kCount];
  int lo[kCount], hi[kCount];
  __device__ __forceinline__ void set(const Params& p, const Group& group, int first) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool valid = first + i < group.count && (kQueries > 1 || threadIdx.x % 4 < 2);
      const int token = group.first + (valid ? first + i : 0);
      row[i] = p.logits + token * p.stride;
      lo[i] = valid && p.key_start != nullptr ? p.key_start[token] : 0;
      hi[i] = valid ? p.key_end[token] : 0;
    }
  }
  __device__ __forceinline__ void write(int key, const float (&scores)[kCount], float scale) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (key >= lo[i] && key < hi[i]) row[i][key] = scores[i] * scale;
    }
  }
};

template <int kQueries>
__device__ __forceinline__ void products(float (&d)[32 * kQueries], const uint8_t* keys,
                                         const uint8_t* queries) {
  const uint64_t a = k_major(keys), b = k_major(queries);
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < kDim; k += 32) wgmma_e4m3(d, advance(a, k), advance(b, k), k > 0);
  wgmma_commit();
}

// Tiles m = warpgroup, warpgroup + 2, … of the block's.
template <int kQueries, bool kPaged, Pace kPace>
__device__ __forceinline__ void consume(const Params& p, Shared<kQueries>& s) {
  constexpr int kStages = Shared<kQueries>::kStages;
  const int group = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 128, 0), lane = threadIdx.x % 32;
  const int row = threadIdx.x % 128 / 32 * 16 + lane / 4 + 8 * (lane & 1);
  int n = 0, run = 0;  // tiles and runs so far
  float weights[16 * kQueries];
  Rows<kQueries> rows;
  for (Walk<kQueries, kPaged> walk(p, s.share); walk.next(); walk.done(), ++run) {
    const int buffer = run % 2;
    load_weights<kQueries>(p.w + static_cast<int64_t>(walk.group.first) * kHeads, walk.group.count,
                           weights);
    rows.set(p, walk.group, kQueries > 1 && (lane & 2) != 0 ? kQueries / 2 : 0);
    wait(&s.queries_full[buffer], run / 2 & 1);
    for (int i = (n ^ group) & 1; i < walk.run; i += 2) {
      const int m = n + i, stage = m % kStages, key = walk.first_key(walk.tile + i) + row;
      float scale = 0;
      if constexpr (!kPaged) {
        if (key >= 0) scale = __ldg(p.scales + key);
      }
      wait(&s.full[stage], m / kStages & 1);
      if constexpr (kPaged) scale = s.scales[stage][row];
      if constexpr (kPace == Pace::kInTurn) {
        if (m > 0) wait(&s.turn[group], (m - 1) / 2 & 1);
      }
      float d[32 * kQueries];
      products<kQueries>(d, s.keys[stage], s.queries[buffer]);
      if constexpr (kPace == Pace::kInTurn) {
        if (lane == 0) arrive(&s.turn[group ^ 1]);
      }
      wgmma_wait<0>();
      hold(d);
      __syncwarp();
      if (lane == 0) arrive(&s.empty[stage]);
      float scores[kMine<kQueries>];
      sum_heads<kQueries>(d, weights, scores);
      rows.write(key, scores, scale);
    }
    n += walk.run;
    if (lane == 0) arrive(&s.queries_empty[buffer]);
  }
}

#endif

template <int kQueries, bool kPaged, Pace kPace>
__global__ void __launch_bounds__(kThreads, 1)
    logits_hopper_kernel(const Params p, const __grid_constant__ CUtensorMap q_map,
                         const __grid_constant__ CUtensorMap key_map) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint8_t memory[];
  Shared<kQueries>& s = *reinterpret_cast<Shared<kQueries>*>(
      memory + (1024 - (shared_address(memory) & 1023)) % 1024);
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shared<kQueries>::kStages; ++i) {
      init_barrier(&s.full[i], 1);
      init_barrier(&s.empty[i], 4);
    }
    for (int i = 0; i < 2; ++i) {
      init_barrier(&s.queries_full[i], 1);
      init_barrier(&s.queries_empty[i], 8);
      init_barrier(&s.turn[i], 4);
    }
    fence_barrier_init();
  }
  find_share<kQueries, kPaged, kThreads>(p, s.sums, &s.share);
  if (threadIdx.x < 256) {
    more_registers<240>();
    consume<kQueries, kPaged, kPace>(p, s);
  } else {
    fewer_registers<24>();
    if (threadIdx.x < 288) produce<kQueries, kPaged>(p, q_map, key_map, s);
  }
#endif
}

}  // namespace warmgate::kernels::cuda::logits
