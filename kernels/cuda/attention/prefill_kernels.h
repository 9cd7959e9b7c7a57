// The kernels behind sparse_prefill.h, each by itself: for its tests and measurements.
#pragma once

#include "kernels/cuda/attention/sparse_prefill.h"

namespace warmgate::kernels::cuda {

constexpr int kPrefillDim = 512;      // channels of a head, of a key
constexpr int kPrefillHeadTile = 64;  // heads that one block of threads of the sm_90a kernel serves

/// A warp a head, fp32 sums; any arch >= 80.
void run_prefill_general(const cpu::SparsePrefill& p, const Launch& launch);
/// wgmma: arch 90 only. Heads are taken 64 at a time; of the last 64 those beyond `heads` cost as
/// much as the others.
void run_prefill_sm90(const cpu::SparsePrefill& p, const Launch& launch);

/// How many entries of a token's list count (kernels/cpu/sparse_attention.h: whole_rows).
__host__ __device__ inline int prefill_length(const cpu::SparsePrefill& p, int len) {
  const int width = static_cast<int>(p.width);
  if (len <= 0) return 0;
  return p.whole_rows || len > width ? width : len;
}
/// Whether entry `index` of a list names a row.
__host__ __device__ inline bool prefill_counts(const cpu::SparsePrefill& p, int index) {
  return index >= 0 && (p.keys <= 0 || index < p.keys);
}

}  // namespace warmgate::kernels::cuda
