// Attention of each token over a list of 512-wide rows that are keys and values at once, with a
// sink in the denominator: out = Σ e^s·k / (Σ e^s + e^sink), s = scale·q·k. Two passes: the
// maximum, then sums over the keys in list order, fp32; one rounding to bf16. Both forms give the
// same bits for the same list of keys. Negative indices are skipped wherever they stand; lens is
// clamped to the width. sink -inf: no sink; +inf: zeros; no key: zeros. Origin: vLLM at d40c3e3c00,
// models/deepseek_v4/nvidia/flashmla.py (call sites of flash_mla_sparse_fwd and
// flash_mla_with_kvcache).
#pragma once

#include <cstdint>

#include "kernels/cpu/pages.h"

namespace warmgate::kernels::cpu {

/// q [tokens,heads,512] bf16, kv [n,512] bf16, indices [tokens,width] i32 into kv, lens [tokens]
/// i32, sink [heads] fp32 → out [tokens,heads,512] bf16. Heads whose q is all zero (padding) share
/// one pass, so that they cost next to nothing.
struct SparsePrefill {
  std::int64_t tokens = 0, heads = 0, width = 0;
  const Bf16* q = nullptr;
  const Bf16* kv = nullptr;
  const std::int32_t* indices = nullptr;
  const std::int32_t* lens = nullptr;
  const float* sink = nullptr;
  Bf16* out = nullptr;
  float scale = 0.044194173824159216F;  // 512^-0.5
  std::int64_t keys = 0;                // n; 0: not known, every index is trusted
  /// The whole width of a row with lens[t] > 0 counts, but for indices outside 0..keys-1. On the
  /// host: CpuKernels does it.
  bool whole_rows = false;
};
void sparse_prefill(const SparsePrefill& p);

/// The same over cache pages: `extra` slots first (compressed entries, ascending), then the
/// window's. extra_indices nullptr: none.
struct SparseDecode {
  std::int64_t tokens = 0, heads = 0, width = 0, extra_width = 0;
  const Bf16* q = nullptr;
  Pages window;
  const std::int32_t* indices = nullptr;
  const std::int32_t* lens = nullptr;
  Pages extra;
  const std::int32_t* extra_indices = nullptr;
  const std::int32_t* extra_lens = nullptr;
  const float* sink = nullptr;
  Bf16* out = nullptr;
  float scale = 0.044194173824159216F;
  /// The whole width of the window's row counts where lens[t] > 0; an index below 0 is slot 0. On
  /// the host: CpuKernels does it.
  bool counts_padding = false;
};
void sparse_decode(const SparseDecode& p);

}  // namespace warmgate::kernels::cpu
