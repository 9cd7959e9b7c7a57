#include "kernels/cpu/compressor.h"

#include <algorithm>

#include "kernels/cpu/index_rows.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/page_rows.h"
#include "kernels/cpu/rope.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/variant.h"

namespace warmgate::kernels::cpu {

namespace {

WG_CPU_INLINE float* state_row(const Pages& state, std::int64_t slot, std::int64_t floats) {
  std::uint8_t* page = state.base + slot / state.rows * state.stride;
  return reinterpret_cast<float*>(page) + slot % state.rows * floats;
}

WG_CPU_INLINE void save_partial_states_body(const SavePartialStates& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    if (p.slots[t] < 0) continue;
    const float* in = p.kv_score + t * 2 * p.width;
    const float* ape = p.ape + p.positions[t] % p.ratio * p.width;
    float* out = state_row(p.state, p.slots[t], 2 * p.width);
    for (std::int64_t i = 0; i < p.width; ++i) out[i] = in[i];
    for (std::int64_t i = 0; i < p.width; ++i) out[p.width + i] = in[p.width + i] + ape[i];
  }
}

// One row of a window: kv and score of the columns that count there.
struct WindowRow {
  const float* kv;
  const float* score;
};

WG_CPU_INLINE std::int64_t gather_window(const CompressWindow& p, std::int64_t token,
                                         WindowRow* rows) {
  const std::int64_t width = (1 + p.overlap) * p.dim;
  const std::int64_t first = p.positions[token] - (1 + p.overlap) * p.ratio + 1;
  std::int64_t count = 0;
  for (std::int64_t i = std::max<std::int64_t>(-first, 0); i < (1 + p.overlap) * p.ratio; ++i) {
    const std::int64_t slot = p.state_table.slot(p.token_to_req[token], first + i);
    const float* row = state_row(p.state, slot, 2 * width) + (i >= p.ratio ? p.dim : 0);
    rows[count++] = {row, row + width};
  }
  return count;
}

// Softmax over the rows and weighted sum, per channel; rows ascending.
WG_CPU_INLINE void pool(const WindowRow* rows, std::int64_t count, std::int64_t dim, float* out) {
  float top[kHeadDim], sum[kHeadDim];
  for (std::int64_t c = 0; c < dim; ++c) top[c] = rows[0].score[c], sum[c] = 0, out[c] = 0;
  for (std::int64_t r = 1; r < count; ++r) {
    const float* score = rows[r].score;
    for (std::int64_t c = 0; c < dim; ++c) top[c] = score[c] > top[c] ? score[c] : top[c];
  }
  for (std::int64_t r = 0; r < count; ++r) {
    const float* score = rows[r].score;
    const float* kv = rows[r].kv;
    for (std::int64_t c = 0; c < dim; ++c) {
      const float e = exponential(score[c] - top[c]);
      sum[c] += e;
      out[c] += e * kv[c];
    }
  }
  for (std::int64_t c = 0; c < dim; ++c) out[c] /= sum[c];
}

WG_CPU_INLINE void store_entry(const CompressWindow& p, std::int64_t slot, float* entry) {
  if (p.format == EntryFormat::kDsMla) {
    round_to_bf16(entry, p.dim);
    write_ds_mla(entry, ds_mla_row(p.cache, slot));
    return;
  }
  const IndexFormat format =
      p.format == EntryFormat::kIndexerFp8 ? IndexFormat::kFp8 : IndexFormat::kMxfp4;
  // Upstream's fp8 kernel rounds to bf16 before it quantises; the fp4 one is taken to do the same.
  round_to_bf16(entry, p.dim);
  const IndexRow row = index_row(format, p.cache, slot);
  write_index_row(format, entry, row.values, row.scale);
}

WG_CPU_INLINE void compress_window_body(const CompressWindow& p) {
  static thread_local Scratch<WindowRow> scratch;
  WindowRow* rows = scratch.get((1 + p.overlap) * p.ratio);
  float entry[kHeadDim];
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const std::int64_t position = p.positions[t];
    if (p.slots[t] < 0 || (position + 1) % p.ratio != 0) continue;
    pool(rows, gather_window(p, t, rows), p.dim, entry);
    const float factor = inverse_rms(entry, p.dim, p.eps);
    for (std::int64_t c = 0; c < p.dim; ++c) entry[c] = entry[c] * factor * to_float(p.norm[c]);
    rotate(entry + p.dim - kRopeDims, p.cos_sin + position / p.ratio * p.ratio * kRopeDims);
    store_entry(p, p.slots[t], entry);
  }
}

}  // namespace

WG_CPU_VARIANTS(save_partial_states, SavePartialStates)
WG_CPU_VARIANTS(compress_window, CompressWindow)

}  // namespace warmgate::kernels::cpu
