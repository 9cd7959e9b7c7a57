// The kernels behind sparse_decode.h, each callable alone so that tests can compare them.
#pragma once

#include "kernels/cpu/sparse_attention.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// Any architecture from 80 and any number of heads: plain fp32 arithmetic, one block for 16 heads
/// of a token.
void run_general_decode(const cpu::SparseDecode& p, const Launch& launch);

/// The keys of a token are cut into groups · cluster parts, a block each. The blocks of a cluster
/// merge theirs; several groups leave fp32 sums in the scratch memory and a second kernel joins
/// them (cluster >= 2 then).
struct DecodeSplit {
  int cluster = 1, groups = 1;
};
constexpr int kMostInCluster = 16;
constexpr int kAlwaysInCluster = 8;  // what every Hopper GPU can place

/// Tiles of 64 heads of a token.
inline std::int64_t decode_units(const cpu::SparseDecode& p) {
  return p.tokens * ((p.heads + 63) / 64);
}
/// Of the scratch memory.
inline std::size_t decode_scratch_bytes(const cpu::SparseDecode& p, const DecodeSplit& split) {
  if (split.groups == 1) return 0;
  return static_cast<std::size_t>(decode_units(p) * split.groups) * 64 * (512 + 2) * sizeof(float);
}
/// What should take the least time in that much scratch memory. A function of sizes only.
DecodeSplit decode_split(const cpu::SparseDecode& p, const Launch& launch);

/// sm_90a: tensor cores, a unit's part a block. scale > 0.
void run_hopper_decode(const cpu::SparseDecode& p, const Launch& launch, const DecodeSplit& split);
/// Whether the device can place clusters of kMostInCluster blocks of it.
bool places_large_clusters();
/// Its second kernel; the arrays as decode::Parts has them.
void combine_decode(const cpu::SparseDecode& p, const Launch& launch, int groups, const float* sums,
                    const float* tops, const float* totals);

}  // namespace warmgate::kernels::cuda
