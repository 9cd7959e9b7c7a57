// Cache pages in the fp8_ds_mla layout, 584 bytes a token of 512 channels, and how rows are found.
// A page of `rows` rows: rows·576 data bytes (448 e4m3, 64 bf16), then rows·8 scale bytes (seven
// ue8m0, one a block of 64 channels, then a zero).
// Origin: vLLM at d40c3e3c00, models/deepseek_v4/common/ops/cache_utils.py.
#pragma once

#include <cstdint>

#include "kernels/cpu/formats.h"

namespace warmgate::kernels::cpu {

constexpr std::int64_t kHeadDim = 512, kNopeDim = 448;
constexpr std::int64_t kRowDataBytes = 576, kRowScaleBytes = 8;

/// Pages of `rows` rows each; page b begins at base + b·stride (bytes). Slot s is row s mod rows of
/// page s / rows.
struct Pages {
  std::uint8_t* base = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0;
};

/// entries [requests,stride] i32 of page ids. Negative ids (freed blocks) read as page 0.
struct BlockTable {
  const std::int32_t* entries = nullptr;
  std::int64_t stride = 0;
  std::int64_t page_rows = 0;
  /// The slot of row `row` of request `request`.
  constexpr std::int64_t slot(std::int64_t request, std::int64_t row) const {
    const std::int32_t page = entries[request * stride + row / page_rows];
    return (page < 0 ? 0 : page) * page_rows + row % page_rows;
  }
};

/// One row, channels [512]; the first 448 are already what bf16 can hold where exactness matters.
/// data [576] bytes, scales [8] bytes. Per 64 channels e = ceil(log2(max(amax,1e-4)/448)), values
/// x·2^-e clamped to ±448 as e4m3; the last 64 rounded to bf16.
void encode_ds_mla(const float* channels, std::uint8_t* data, std::uint8_t* scales);
/// The row at `slot` → bf16 [512].
void decode_ds_mla(const Pages& pages, std::int64_t slot, Bf16* out);
/// The same as fp32 (bf16 values).
void decode_ds_mla(const Pages& pages, std::int64_t slot, float* out);

/// k [tokens,512] bf16 → the row at slots[t] (i64; negative: skipped). Stride in elements.
struct InsertDsMla {
  std::int64_t tokens = 0;
  const Bf16* k = nullptr;
  std::int64_t k_stride = kHeadDim;
  const std::int64_t* slots = nullptr;
  Pages pages;
};
void insert_ds_mla(const InsertDsMla& p);

/// Rows of requests as bf16 into a workspace: kv[b·request_stride + (offset+i)·512], i =
/// 0..count-1, is row begin+i of request b, found through table row b. gather_lens == nullptr: rows
/// 0..seq_len/ratio-1 (compressed entries). Else the last gather_len raw rows of each request:
/// begin = seq_len - gather_len (ratio is not read). Rows beyond stay as they were. seq_lens,
/// gather_lens [requests] i32; request_stride in elements.
struct DequantGather {
  std::int64_t requests = 0, ratio = 1, offset = 0, request_stride = 0;
  const std::int32_t* seq_lens = nullptr;
  const std::int32_t* gather_lens = nullptr;
  Pages pages;
  BlockTable table;
  Bf16* kv = nullptr;
};
void dequant_gather(const DequantGather& p);

}  // namespace warmgate::kernels::cpu
