#include "kernels/cuda/attention/sparse_decode.h"

#include <algorithm>
#include <limits>

#include "kernels/cuda/attention/sparse_decode_paths.h"

namespace warmgate::kernels::cuda {

namespace {

constexpr std::int64_t kStepKeys = 64;
constexpr std::int64_t kMostHeads = 128;

bool aligned(const void* pointer, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

Reason why_not_pages(const char* name, const cpu::Pages& pages) {
  const std::string which = std::string("sparse_decode: ") + name;
  if (!aligned(pages.base, 16) || pages.stride % 16 != 0)
    return which + " pages are not aligned to 16 bytes";
  if (pages.rows < 1 || pages.rows > std::numeric_limits<std::int32_t>::max())
    return which + " pages have " + std::to_string(pages.rows) + " rows";
  return {};
}

}  // namespace

DecodeSplit decode_split(const cpu::SparseDecode& p, const Launch& launch) {
  // Microseconds on an H200: a block's start and end, a step of 64 keys, merging a cluster, the
  // second kernel.
  constexpr double kBlock = 10, kStep = 2.4, kMerge = 4, kCombine = 4;
  const std::int64_t extra = p.extra_indices != nullptr ? p.extra_width : 0;
  const std::int64_t steps =
      std::max<std::int64_t>(1, (p.width + extra + kStepKeys - 1) / kStepKeys);
  const std::int64_t units = decode_units(p);
  DecodeSplit best;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](const DecodeSplit& split) {
    const std::int64_t parts = split.cluster * split.groups;
    if (parts > steps || decode_scratch_bytes(p, split) > launch.scratch_bytes) return;
    // Clusters do not cross the GPU's clusters of multiprocessors, 16 or a few more each.
    const std::int64_t at_once =
        split.cluster == 1 ? std::max(1, launch.multiprocessors)
                           : std::max(1, launch.multiprocessors / 16 * (16 / split.cluster));
    const std::int64_t turns = (units * split.groups + at_once - 1) / at_once;
    const double waves = static_cast<double>(turns);
    const double time = waves * (kBlock + kStep * static_cast<double>((steps + parts - 1) / parts) +
                                 (split.cluster > 1 ? kMerge : 0)) +
                        (split.groups > 1 ? kCombine : 0);
    if (time < least) least = time, best = split;
  };
  const int most = places_large_clusters() ? kMostInCluster : kAlwaysInCluster;
  for (int cluster = 1; cluster <= most; ++cluster) consider({cluster, 1});
  for (int groups = 2; units * groups * kAlwaysInCluster <= launch.multiprocessors; ++groups)
    consider({kAlwaysInCluster, groups});
  return best;
}

Reason can_run(const cpu::SparseDecode& p, const Launch& launch) {
  constexpr std::int64_t kMostWidth = 1 << 30;
  if (launch.arch < 80) return "sparse_decode: needs compute capability 8.0";
  if (p.heads < 1 || p.heads > kMostHeads)
    return "sparse_decode: " + std::to_string(p.heads) + " heads, not 1..128";
  if (p.tokens < 0 || p.tokens > 1 << 24)
    return "sparse_decode: " + std::to_string(p.tokens) + " tokens, not 0..2^24";
  if (p.width < 0 || p.extra_width < 0 || p.width > kMostWidth || p.extra_width > kMostWidth)
    return "sparse_decode: index lists wider than 2^30";
  if (!aligned(p.q, 16) || !aligned(p.out, 16)) return "sparse_decode: q or out is not aligned";
  if (Reason why = why_not_pages("window", p.window)) return why;
  if (p.extra_indices != nullptr) return why_not_pages("extra", p.extra);
  return {};
}

void run(const cpu::SparseDecode& p, const Launch& launch) {
  const bool hopper =
      launch.arch == 90 && p.scale > 0 && p.scale < std::numeric_limits<float>::infinity();
  if (!hopper) return run_general_decode(p, launch);
  run_hopper_decode(p, launch, decode_split(p, launch));
}

}  // namespace warmgate::kernels::cuda
