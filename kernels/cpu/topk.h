// Which compressed entries a query attends to.
#pragma once

#include <cstdint>

#include "kernels/cpu/pages.h"

namespace warmgate::kernels::cpu {

/// Of logits[t, start..end-1] the min(topk, end-start) largest: their columns minus start,
/// ascending, then -1 up to `topk`. Ties at the last place go to the lower column; NaN ranks
/// lowest. row_start nullptr: 0. logits [tokens,logits_stride] fp32, indices
/// [tokens,indices_stride] i32.
struct TopkPerRow {
  std::int64_t tokens = 0, topk = 0;
  const float* logits = nullptr;
  std::int64_t logits_stride = 0;
  const std::int32_t* row_start = nullptr;
  const std::int32_t* row_end = nullptr;
  std::int32_t* indices = nullptr;
  std::int64_t indices_stride = 0;
};
void topk_per_row(const TopkPerRow& p);

/// Row t becomes 0..(p+1)/ratio-1, then -1 up to `topk`. Equals topk_per_row where all entries fit.
/// Origin: vLLM at d40c3e3c00, models/deepseek_v4/attention.py _fill_short_context_topk_indices.
struct FillShortContext {
  std::int64_t tokens = 0, topk = 0, ratio = 4;
  const std::int64_t* positions = nullptr;
  std::int32_t* indices = nullptr;
  std::int64_t indices_stride = 0;
};
void fill_short_context(const FillShortContext& p);

/// local [tokens,width] i32 → global [tokens,width]: slots through the table, -1 stays -1;
/// lens[t] = entries >= 0, 0 for an invalid token. is_valid [tokens] bool bytes.
/// Origin: vLLM at d40c3e3c00, models/deepseek_v4/nvidia/flashmla.py
/// _compute_global_topk_indices_and_lens.
struct GlobalTopkIndices {
  std::int64_t tokens = 0, width = 0;
  const std::int32_t* local = nullptr;
  const std::int32_t* token_to_req = nullptr;
  BlockTable table;
  const std::uint8_t* is_valid = nullptr;
  std::int32_t* global = nullptr;
  std::int32_t* lens = nullptr;
};
void global_topk_indices(const GlobalTopkIndices& p);

}  // namespace warmgate::kernels::cpu
