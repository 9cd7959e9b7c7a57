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
  float decay[kHeads];                    // what sums so far are multiplied by in this step
  float2 ends[kMostInCluster][kHeads];    // of the cluster's blocks: how their softmax ended (End)
  float factor[kHeads];                   // of the block's sums in the output
  uint64_t valid[kStages];                // a bit a key
  Barrier full[kStages], empty[kStages];  // keys are there; are read
  Barrier weighed, summed;                // weights and decay are there; are read
  Barrier q_there, read;  // of a unit: q is in shared memory; nobody reads q or keys any more
  Barrier ends_there;     // `ends` of all blocks are there
  Barrier factors;        // `factor` is there
};

// How the softmax of a head ended over one block's keys: x largest score (scaled, base 2; -inf: no
// key), y the sum of weights relative to it.
using End = float2;

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

/// What a block works for: which unit, and which part of its keys.
struct Place {
  __device__ Place(const DecodeParams& p, const Parts& parts, int index) {
    const int count = parts.cluster * parts.groups;
    const int unit = count == 1 ? index : index / count;
    const bool two = p.heads > kHeads;
    part = index - unit * count;
    token = two ? unit / 2 : unit;
    first_head = two ? unit % 2 * kHeads : 0;
    heads = min(kHeads, p.heads - first_head);
    rank = parts.groups == 1 ? part : part % parts.cluster;
    group = parts.groups == 1 ? unit : unit * parts.groups + part / parts.cluster;
  }
  /// The block's first head of its token in q and out.
  __device__ int64_t row(const DecodeParams& p) const {
    return static_cast<int64_t>(token) * p.heads + first_head;
  }
  int part, token, group, rank, first_head, heads;
};

/// With its keys, in steps of kKeys.
struct Work : Place {
  __device__ Work(const DecodeParams& p, const Parts& parts, int index)
      : Place(p, parts, index), list(p, token) {
    const int count = parts.cluster * parts.groups;
    full_begin = bound(p.width + p.extra_width, part, count);
    begin = bound(list.count, part, count);
    end = bound(list.count, part + 1, count);
  }
  /// The first step of a part: the first parts have a step more where they cannot all have as many.
  __device__ static int bound(int keys, int part, int count) {
    const unsigned steps = (static_cast<unsigned>(keys) + kKeys - 1) / kKeys;
    if (count == 1) return part == 0 ? 0 : static_cast<int>(steps);
    const unsigned each = steps / static_cast<unsigned>(count);
    const unsigned more = steps - each * static_cast<unsigned>(count);
    return static_cast<int>(each * part + min(static_cast<unsigned>(part), more));
  }

  KeyList list;
  int begin, end;
  int full_begin;  // where it begins if the lists are full
};

}  // namespace warmgate::kernels::cuda::decode
