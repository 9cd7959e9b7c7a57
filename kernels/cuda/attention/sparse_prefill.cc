#include "kernels/cuda/attention/sparse_prefill.h"

#include <cstdint>

#include "kernels/cuda/attention/prefill_kernels.h"

namespace warmgate::kernels::cuda {

namespace {

// Both kernels count tiles of heads and places in a list in 32 bits, with room for a step beyond.
constexpr std::int64_t kMost = std::int64_t{1} << 30;
constexpr std::int64_t kMostHeads = 4096;

bool aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

}  // namespace

Reason can_run(const cpu::SparsePrefill& p, const Launch& launch) {
  if (launch.arch < 80) return "sparse_prefill: bf16 needs architecture 80 or later";
  if (p.heads < 0 || p.heads > kMostHeads) return "sparse_prefill: more than 4096 heads";
  const std::int64_t tiles = (p.heads + kPrefillHeadTile - 1) / kPrefillHeadTile;
  if (p.tokens < 0 || p.tokens > kMost || p.tokens * tiles > kMost)
    return "sparse_prefill: more than 2^30 tiles of 64 heads";
  if (p.width < 0 || p.width > kMost) return "sparse_prefill: width beyond 2^30";
  if (!aligned(p.q) || !aligned(p.kv) || !aligned(p.out))
    return "sparse_prefill: q, kv and out must be 16-byte aligned";
  return std::nullopt;
}

void run(const cpu::SparsePrefill& p, const Launch& launch) {
  if (p.tokens == 0 || p.heads == 0) return;
  if (launch.arch == 90 && p.scale > 0) {  // it compares scores before it scales them
    run_prefill_sm90(p, launch);
  } else {
    run_prefill_general(p, launch);
  }
}

}  // namespace warmgate::kernels::cuda
