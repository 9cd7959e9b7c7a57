// The keys of a token: its extra list, then its window list, as one list; and where a key's row
// lies in its page.
#pragma once

#include <stdint.h>

#include "kernels/cpu/sparse_attention.h"

namespace warmgate::kernels::cuda {

/// cpu::SparseDecode as kernels take it: by value, 32-bit where that is enough.
struct DecodeParams {
  const uint16_t* q;
  uint16_t* out;
  const float* sink;
  const int32_t* indices;
  const int32_t* lens;
  const int32_t* extra_indices;
  const int32_t* extra_lens;
  const uint8_t* window_base;
  const uint8_t* extra_base;
  int64_t window_stride, extra_stride;
  uint32_t window_rows, extra_rows;
  int width, extra_width, heads;
  float scale;
  bool counts_padding;
};

inline DecodeParams decode_params(const cpu::SparseDecode& p) {
  const bool extra = p.extra_indices != nullptr;
  return {p.q,
          p.out,
          p.sink,
          p.indices,
          p.lens,
          p.extra_indices,
          p.extra_lens,
          p.window.base,
          p.extra.base,
          p.window.stride,
          p.extra.stride,
          static_cast<uint32_t>(p.window.rows),
          static_cast<uint32_t>(extra ? p.extra.rows : 1),
          static_cast<int>(p.width),
          static_cast<int>(extra ? p.extra_width : 0),
          static_cast<int>(p.heads),
          p.scale,
          p.counts_padding};
}

#if defined(__CUDACC__)
/// A row's 576 data bytes and 8 scale bytes; data nullptr: no key there.
struct KeyRow {
  const uint8_t* data = nullptr;
  const uint8_t* scales = nullptr;
};

/// Both lists of one token.
struct KeyList {
  __device__ KeyList(const DecodeParams& p, int64_t token)
      : window(p.indices + token * p.width), extra(p.extra_indices + token * p.extra_width) {
    extra_count = p.extra_width == 0 ? 0 : min(max(p.extra_lens[token], 0), p.extra_width);
    const int length = p.lens[token];
    const int counted = p.counts_padding && length > 0 ? p.width : length;
    count = extra_count + min(max(counted, 0), p.width);
  }
  /// The index of key i as it stands in its list; -1 beyond. Nothing is computed with it here, so
  /// that nobody waits for it before row() does.
  __device__ int slot(int i) const {
    if (i >= count) return -1;
    return __ldg(i < extra_count ? extra + i : window + i - extra_count);
  }
  /// The same where the extra list is full: an index that exists, known before the lengths are.
  __device__ int slot_if_full(const DecodeParams& p, int i) const {
    if (i >= p.extra_width + p.width) return -1;
    return __ldg(i < p.extra_width ? extra + i : window + i - p.extra_width);
  }
  __device__ KeyRow row(const DecodeParams& p, int i, int slot) const {
    const bool is_extra = i < extra_count;
    if (p.counts_padding && !is_extra && i < count) slot = max(slot, 0);
    if (slot < 0) return {};
    const uint32_t rows = is_extra ? p.extra_rows : p.window_rows;
    const uint32_t page = static_cast<uint32_t>(slot) / rows;
    const uint32_t row = static_cast<uint32_t>(slot) - page * rows;
    const uint8_t* base = (is_extra ? p.extra_base : p.window_base) +
                          page * (is_extra ? p.extra_stride : p.window_stride);
    return {base + row * 576u, base + rows * 576u + row * 8u};
  }

  const int32_t* window;
  const int32_t* extra;
  int extra_count, count;
};
#endif

}  // namespace warmgate::kernels::cuda
