// The window compressor: one fp32 state row a token, one entry a completed window.
// Origin: vLLM at d40c3e3c00, models/deepseek_v4/compressor.py, common/ops/save_partial_states.py,
// common/ops/fused_compress_quant_cache.py.
#pragma once

#include <cstdint>

#include "kernels/cpu/pages.h"

namespace warmgate::kernels::cpu {

/// kv_score [tokens,2·width] fp32 (kv | score) → the state row at slots[t] (negative: skipped):
/// [kv | score + ape[p mod ratio]]. width = coff·D; ape [ratio,width] fp32. State pages hold fp32
/// rows of 2·width; Pages::stride in bytes, a multiple of 4.
struct SavePartialStates {
  std::int64_t tokens = 0, width = 0, ratio = 0;
  const float* kv_score = nullptr;
  const float* ape = nullptr;
  const std::int64_t* slots = nullptr;
  const std::int64_t* positions = nullptr;
  Pages state;
};
void save_partial_states(const SavePartialStates& p);

enum class EntryFormat : std::uint8_t { kDsMla, kIndexerFp8, kIndexerMxfp4 };

/// For each token t with slots[t] >= 0 (its position ends a window): rows p-(1+overlap)·ratio+1..p
/// of request token_to_req[t] through the state table (rows before position 0 weigh nothing),
/// softmax over the rows per channel, weighted sum, RMS norm with weight [dim] bf16, rotation of
/// the last 64 at position ratio·(p/ratio), all fp32; then rounded to bf16 and quantised at the
/// compressed slot. overlap (0|1): state rows hold 2·(1+overlap)·dim floats; the previous window
/// takes the first dim columns of kv and score, the current one the second. dim 512 (kDsMla) or 128
/// (indexer).
struct CompressWindow {
  std::int64_t tokens = 0, ratio = 0, overlap = 0, dim = 0;
  Pages state;
  BlockTable state_table;
  const std::int32_t* token_to_req = nullptr;
  const std::int64_t* positions = nullptr;
  const Bf16* norm = nullptr;
  const float* cos_sin = nullptr;
  const std::int64_t* slots = nullptr;
  EntryFormat format = EntryFormat::kDsMla;
  Pages cache;
  float eps = 1e-6F;
};
void compress_window(const CompressWindow& p);

}  // namespace warmgate::kernels::cpu
