// Cache rows by their definition: fp8_ds_mla (584 bytes a token) and the indexer's key rows, and
// where a position or a compressed entry lies, from a block table alone. vLLM at d40c3e3c00,
// vllm/models/deepseek_v4/common/ops/{cache_utils,fused_compress_quant_cache}.py.
#pragma once

#include <array>

#include "kernels/reference/matrix.h"

namespace warmgate::reference {

// A page of `rows` rows: rows * 576 data bytes, then rows * 8 scale bytes, then padding.
inline constexpr std::int64_t kNope = 448, kRopeDims = 64, kHeadDim = 512;
inline constexpr std::int64_t kDataBytes = 576, kScaleBytes = 8;

struct DsMlaRow {
  std::array<std::byte, kDataBytes> data;    // 448 e4m3, then 64 bf16
  std::array<std::byte, kScaleBytes> scale;  // 7 of exponent + 127, one per 64 values; then 0
};

/// The row of 512 values, first rounded to bf16 if they are not bf16 already.
DsMlaRow encode_ds_mla(View row);
/// 512 values as attention reads them: e4m3 * 2^(byte-127) rounded to bf16 (always exact).
Vector decode_ds_mla(const DsMlaRow& row);
/// What a right row of these 512 exact values reads as: decode_ds_mla(encode_ds_mla(exact)), except
/// that where a value lies within kSlack (of the largest) of a rounding edge, the stored side
/// counts.
Vector expected_ds_mla(View exact, const DsMlaRow& stored);
/// The stored bytes of one row of a page that holds `rows` rows.
DsMlaRow ds_mla_row(Bytes page, std::int64_t rows, std::int64_t row);
Vector decode_ds_mla_row(Bytes page, std::int64_t rows, std::int64_t row);

/// fp8: `rows` * 128 value bytes, then `rows` fp32 scales (powers of two).
struct IndexerRow {
  std::array<std::byte, 128> data;
  std::array<std::byte, 4> scale;
};
/// Both indexer encodings round to bf16 first, as the compressor's fused store does.
IndexerRow encode_indexer(View key);
Vector decode_indexer(const IndexerRow& row);
/// As expected_ds_mla; the channels are rounded to bf16 first.
Vector expected_indexer(View exact, const IndexerRow& stored);
IndexerRow indexer_row(Bytes page, std::int64_t rows, std::int64_t row);
Vector decode_indexer_row(Bytes page, std::int64_t rows, std::int64_t row);

/// fp4: `rows` * 64 bytes of nibble pairs (even channel low), then `rows` * 4 ue8m0 bytes.
struct IndexerRowFp4 {
  std::array<std::byte, 64> data;
  std::array<std::byte, 4> scale;
};
IndexerRowFp4 encode_indexer_fp4(View key);
Vector decode_indexer_fp4(const IndexerRowFp4& row);
Vector expected_indexer_fp4(View exact, const IndexerRowFp4& stored);
IndexerRowFp4 indexer_row_fp4(Bytes page, std::int64_t rows, std::int64_t row);

/// A layer's pages: block b starts at b * block_stride of `memory` (the layer's first byte in block
/// 0).
struct Pages {
  Bytes memory;
  std::int64_t block_stride = 0;  // bytes from block to block
  std::int64_t rows = 0;          // rows in a page: 64 for window, C4 and indexer keys, 2 for C128
  [[nodiscard]] Bytes page(std::int64_t block) const;
};

/// Row `index` of a request (a raw position, or a compressed entry): block table[index / rows], row
/// index mod rows. Throws std::out_of_range if the table ends before it, and std::logic_error if
/// the block is 0 or negative: freed, so nobody may read it with a positive length.
struct Place {
  std::int64_t block = 0, row = 0;
};
Place place(std::span<const std::int32_t> block_table, std::int64_t rows, std::int64_t index);

/// Global slot block * rows + row of a raw position; a compressed entry's only where the position
/// ends it, -1 elsewhere. `block_tokens` is the group's (256 for compressed caches).
std::int64_t slot(std::span<const std::int32_t> block_table, std::int64_t block_tokens,
                  std::int64_t position);
std::int64_t compressed_slot(std::span<const std::int32_t> block_table, std::int64_t block_tokens,
                             std::int64_t ratio, std::int64_t position);

/// Rows `first` .. `first + count - 1` of a request, decoded, through its block table.
Matrix ds_mla_rows(const Pages& pages, std::span<const std::int32_t> block_table,
                   std::int64_t first, std::int64_t count);
Matrix indexer_rows(const Pages& pages, std::span<const std::int32_t> block_table,
                    std::int64_t first, std::int64_t count);
/// fp32 state rows: `width` values each, pages of `pages.rows` rows.
Vector state_row_at(const Pages& pages, std::span<const std::int32_t> block_table,
                    std::int64_t width, std::int64_t position);

}  // namespace warmgate::reference
