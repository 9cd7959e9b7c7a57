// Compressors: the state row of a token, and the entry that a window of state rows makes. vLLM at
// d40c3e3c00, vllm/models/deepseek_v4/compressor.py, common/ops/save_partial_states.py.
#pragma once

#include <optional>

#include "kernels/reference/rope.h"

namespace warmgate::reference {

struct CompressorShape {
  std::int64_t ratio = 4;
  std::int64_t dim = 512;                                    // 128 for the indexer's
  [[nodiscard]] bool overlap() const { return ratio == 4; }  // entries also pool the window before
  [[nodiscard]] std::int64_t columns() const;                // of kv, and of score: dim, or 2 * dim
  [[nodiscard]] std::int64_t rows() const;  // pooled for an entry: ratio, or 2 * ratio
};

/// kv_score [2 * columns] = [kv | score] -> [kv | score + ape[position mod ratio]]; ape [ratio,
/// columns].
Vector state_row(const CompressorShape& shape, View kv_score, const Matrix& ape,
                 std::int64_t position);

/// A token at this position ends entry position / ratio.
bool ends_entry(std::int64_t ratio, std::int64_t position);

/// Positions of the rows that entry j pools, ascending; those before the sequence are negative.
std::vector<std::int64_t> pooled_positions(const CompressorShape& shape, std::int64_t entry);

/// rows: shape.rows() state rows in order, nullopt where the position is negative (score -inf, kv
/// 0). Overlap: the first `ratio` rows give their first dim columns, the last `ratio` rows their
/// second.
Vector pooled(const CompressorShape& shape, const std::vector<std::optional<Vector>>& rows);

/// pooled -> RMSNorm · norm -> RoPE at the entry's first token, ratio * entry. Not rounded: a
/// stored row is encode_ds_mla or encode_indexer of it.
Vector compressed_entry(const CompressorShape& shape,
                        const std::vector<std::optional<Vector>>& rows, View norm, double eps,
                        const Rope& rope, std::int64_t entry);

}  // namespace warmgate::reference
