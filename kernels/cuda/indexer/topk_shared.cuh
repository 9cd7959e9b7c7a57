// Sizes of the selection by clusters, and what a block of it keeps in shared memory.
#pragma once

#include "kernels/cuda/indexer/topk_block.cuh"

namespace warmgate::kernels::cuda::topk {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kMostBlocks = 16;
constexpr int kMostCandidates = 2048;

// A block's. What others count in or read from the first block's is marked.
struct Shared {
  alignas(16) uint32_t bins[kBins];
  alignas(16) uint32_t total[kBins];  // the cluster's bins, in the first block
  uint32_t sums[2][kWarps];
  uint32_t counts;      // chosen for sure << 16 | equal to the last one; read by higher blocks
  uint32_t candidates;  // first block
  uint32_t highest;     // first block: rank of the largest score
  uint32_t ties;        // first block: how many of the equal ones are chosen
  Found found;          // first block
  uint2 list[kMostCandidates];  // first block: score, column
};

}  // namespace warmgate::kernels::cuda::topk
