// What profiling reserves of the shared workspace and what serving can ask of it, as shapes.
// Origin: vLLM at d40c3e3c00, models/deepseek_v4/nvidia/flashmla.py forward_mqa and
// _forward_prefill, model_executor/layers/sparse_attn_indexer.py.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/engine/layers/dims.h"
#include "harness/engine/memory/workspace.h"

namespace warmgate::engine {

/// The radix top-k kernels' own scratch.
inline constexpr std::int64_t kTopkScratchBytes = 1 << 20;
/// VLLM_SPARSE_INDEXER_MAX_LOGITS_MB at its default.
inline constexpr std::int64_t kMaxLogitsBytes = 512ll << 20;

/// Requests that one prefill chunk is planned for; more fit if they are short.
inline constexpr std::int64_t kPrefillChunkRequests = 4;

/// Workspace rows of one request at most: M = ceil(L/r)·[r>1] + W + B.
std::int64_t prefill_rows(const Dims& dims, Kind kind);
/// Views of the attention: kv [requests, rows, D] bf16, indices [B, round_up(topk+W, 128)] i32,
/// lens [B] i32.
std::array<ViewSpec, 3> attention_views(const Dims& dims, std::int64_t requests, std::int64_t rows,
                                        std::int64_t topk);
/// Views of the indexer: values [keys, value bytes] u8, scales [keys, scale bytes] u8,
/// 1 MiB of radix scratch.
std::array<ViewSpec, 3> indexer_views(const Dims& dims, std::int64_t keys);

/// Index columns that serving can ask for: 0, K, or the full C128A stride.
std::int64_t served_topk(const Dims& dims, Kind kind);
/// Index columns that profiling reserves for. `by_buffer_width`: the top-k buffer's width K for
/// every compressed kind (seam workspace.reservation = topk_buffer_width).
std::int64_t reserved_topk(const Dims& dims, Kind kind, bool by_buffer_width);

struct WorkspaceRow {
  std::string_view layer_kind;  // swaonly c4a c128a
  std::string_view consumer;    // attention | indexer
  std::int64_t reserved = 0;    // bytes, after rounding of the views
  std::int64_t needed = 0;      // bytes at full index width and context
  bool short_by_itself() const { return needed > reserved; }
};
/// One row a kind that the target has, and one for the indexer where it has c4a layers. Pure.
std::vector<WorkspaceRow> workspace_plan(const scenario::Resolved& config);
/// `reservation`: value of the seam workspace.reservation.
std::vector<WorkspaceRow> workspace_plan(const Dims& dims, std::string_view reservation);

}  // namespace warmgate::engine
