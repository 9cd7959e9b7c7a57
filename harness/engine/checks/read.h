// Tensors of an executing device as rows of doubles, for the oracles. Codes become values through
// tables made by kernels/reference, so nothing is shared with the kernels that are checked.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/engine/ops/tensor.h"
#include "kernels/reference/cache.h"
#include "kernels/reference/matrix.h"

namespace warmgate::engine::checks {

/// Row `row` of a tensor whose rows are dense: bf16, fp32, fp8 (codes without scales) or i32.
reference::Vector row_of(const Tensor& tensor, std::int64_t row);
/// These rows, one under another.
reference::Matrix rows_of(const Tensor& tensor, std::span<const std::int64_t> rows);
/// All elements of a dense tensor as one row.
reference::Vector all_of(const Tensor& tensor);
/// Row `row` of an MXFP4 tensor [n,…] with one ue8m0 byte for 32 values in scales [n,…],
/// dequantised.
reference::Vector fp4_row(const Tensor& tensor, const Tensor& scales, std::int64_t row);

/// Rows of a stored weight [out,in] (matrix `index` of one with three dimensions): fp8 and fp4 with
/// the block scales that lie right behind the values, bf16, fp32. `whole`: the matrix that w is a
/// part of, starting with a block of scales; else absent.
reference::Matrix weight_rows(const Tensor& w, std::span<const std::int64_t> rows,
                              const Tensor& whole = {}, std::int64_t index = 0);

/// x · wᵀ with all rows of a stored weight, shared out to the cores; no row outlives its sum.
reference::Vector project_stored(reference::View x, const Tensor& w);

/// Elements that are no number, of bf16, fp32 and fp8 tensors: what fresh memory is filled with
/// reads as one. Looks at the first `rows` rows; past `most` elements at every n-th row only.
std::int64_t poisoned(const Tensor& tensor, std::int64_t rows, std::int64_t most);

/// A layer's pages of one cache, view [blocks,rows,row], one at a time.
class PageReader {
 public:
  explicit PageReader(const Tensor& view);
  /// From the page's first byte to the next block's; valid until the next call. Throws
  /// std::out_of_range.
  reference::Bytes page(std::int64_t block);
  std::int64_t rows() const { return view_.dim(1); }

 private:
  Tensor view_;
  std::int64_t stride_, block_ = -1;  // bytes from block to block; the one in bytes_
  std::vector<std::byte> copy_;
  reference::Bytes bytes_;
};
/// Rows of fp8_ds_mla pages at these indices (positions or entries) of one request, dequantised.
/// Throws as reference::place.
reference::Matrix keys_at(const Tensor& view, std::span<const std::int32_t> table,
                          std::span<const std::int64_t> indices);

/// The same of indexer pages, with their scales: fp8, or fp4 with `fp4`.
reference::Matrix index_keys_at(const Tensor& view, std::span<const std::int32_t> table,
                                std::int64_t count, bool fp4);
/// The fp32 state row of a position.
reference::Vector state_at(const Tensor& view, std::span<const std::int32_t> table,
                           std::int64_t position);

}  // namespace warmgate::engine::checks
