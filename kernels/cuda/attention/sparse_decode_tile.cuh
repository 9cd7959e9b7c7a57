// Shapes, shared memory and roles of the Hopper decode kernel (decode_hopper.cu).
#pragma once

#include "kernels/cuda/attention/sparse_decode_keys.cuh"
#include "kernels/cuda/attention/sparse_decode_paths.h"
#include "kernels/cuda/hopper.cuh"

namespace warmgate::kernels::cuda::decode {

constexpr float kInfinity = __builtin_huge_valf();
constexpr int kDim = 512;
constexpr int kHeads = 64;        // of a block: the M of wgmma
constexpr int kKeys = 64;         // of a step
constexpr int kStages = 2;        // steps' keys in shared memory
constexpr int kTileBytes = 8192;  // 64 rows of 128 bytes, swizzled
constexpr int kTiles = kDim / 64;

// Warpgroups 0 and 1 multiply, 2 and 3 fetch and dequantise.
constexpr int kConsumers = 256, kProducers = 256, kThreads = kConsumers + kProducers;
constexpr int kConsumerRegisters = 192, kProducerRegisters = 64;

struct Shared {
  alignas(1024) uint8_t q[kTiles * kTileBytes];  // tile c: heads × channels 64c..64c+63
  alignas(1024) uint8_t keys[kStages][kTiles * kTileBytes];  // the same of keys
  alignas(1024) uint8_t weights[kTileBytes];                 // heads × keys of the step, bf16
  float decay[kHeads];                   // what sums so far are multiplied by in this step
  float top[kHeads];                     // at the end: largest score (scaled, base 2), -inf: no key
  float total[kHeads];                   // at the end: sum of weights
  float tops[kMostInCluster][kHeads];    // of the cluster's blocks
  float factor[kMostInCluster][kHeads];  // of each block's sums in the output
  uint64_t valid[kStages];               // a bit a key
  Barrier full[kStages], empty[kStages];
};

// Named barriers.
constexpr int kAllMeet = 4, kConsumersMeet = 1, kWeightsReady = 2, kWeightsRead = 3;

/// How the keys of a token are shared out: into groups of `cluster` parts; a cluster merges its
/// group. With several groups, each leaves its unnormalised sums (relative to its largest score) in
/// `sums` [units·groups,64,512], with `tops` and `totals` [units·groups,64], for combine_kernel; a
/// unit is 64 heads of a token.
struct Parts {
  int cluster = 1, groups = 1;
  float* sums = nullptr;
  float* tops = nullptr;
  float* totals = nullptr;
};

/// One part of a unit's keys, in steps of kKeys.
struct Work {
  __device__ Work(const DecodeParams& p, const Parts& parts, int index)
      : list(p, index / (parts.cluster * parts.groups) / tiles(p)) {
    const int count = parts.cluster * parts.groups;
    const int part = index % count;
    const int unit = index / count;
    token = unit / tiles(p);
    first_head = unit % tiles(p) * kHeads;
    heads = min(kHeads, p.heads - first_head);
    rank = part % parts.cluster;
    group = unit * parts.groups + part / parts.cluster;
    begin = bound(list.count, part, count);
    end = bound(list.count, part + 1, count);
    full_begin = bound(p.width + p.extra_width, part, count);
  }
  /// The first step of a part.
  __device__ static int bound(int keys, int part, int count) {
    return static_cast<int>(static_cast<int64_t>((keys + kKeys - 1) / kKeys) * part / count);
  }
  __device__ static int tiles(const DecodeParams& p) { return (p.heads + kHeads - 1) / kHeads; }
  /// The block's first head of its token in q and out.
  __device__ int64_t row(const DecodeParams& p) const {
    return static_cast<int64_t>(token) * p.heads + first_head;
  }

  KeyList list;
  int token, group, rank, first_head, heads, begin, end;
  int full_begin;  // where it begins if the lists are full
};

}  // namespace warmgate::kernels::cuda::decode
