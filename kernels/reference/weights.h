// Weights as stored: e4m3 values with one ue8m0 scale per 128 x 128 block, e2m1 pairs with one per
// 32 values, bf16, fp32. DeepSeek-V4 checkpoints: weight_block_size [128, 128], scale_fmt ue8m0.
#pragma once

#include "kernels/reference/matrix.h"

namespace warmgate::reference {

/// values: rows * cols bytes of e4m3; scales: ceil(rows/128) * ceil(cols/128) ue8m0 bytes,
/// row-major.
Matrix weight_fp8(Bytes values, Bytes scales, std::int64_t rows, std::int64_t cols);

/// packed: rows * cols/2 bytes, the even column in the low nibble; scales: rows * ceil(cols/32).
Matrix weight_mxfp4(Bytes packed, Bytes scales, std::int64_t rows, std::int64_t cols);

Matrix weight_bf16(Bytes values, std::int64_t rows, std::int64_t cols);
Matrix weight_fp32(Bytes values, std::int64_t rows, std::int64_t cols);

}  // namespace warmgate::reference
