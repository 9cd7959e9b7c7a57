// score[t,j] = Σ_head ReLU(q·k)·w. Keys are widened a block at a time and met by many tokens; every
// product's bits depend on its own query and key alone.
#include <algorithm>

#include "kernels/cpu/index_rows.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/variant.h"

namespace warmgate::kernels::cpu {

namespace {

constexpr std::int64_t kKeysAtATime = 64;
constexpr std::int64_t kTokensAtATime = 32;

// Rows [first, first + rows) of q; with fp8 the scale is in w, and q_scales may be null.
WG_CPU_INLINE void widen_queries(IndexFormat format, const std::uint8_t* q, const Ue8m0* q_scales,
                                 std::int64_t first, std::int64_t rows, float* out) {
  const std::int64_t bytes = index_value_bytes(format);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::uint8_t* values = q + (first + r) * bytes;
    if (format == IndexFormat::kFp8) {
      for (std::int64_t i = 0; i < kIndexDim; ++i) {
        out[r * kIndexDim + i] = e4m3_to_float(values[i]);
      }
    } else {
      read_index_row(format, values, q_scales + (first + r) * kIndexScaleBytes,
                     out + r * kIndexDim);
    }
  }
}

// logits of `count` <= kKeysAtATime keys for one token; dots: heads·kKeysAtATime floats.
WG_CPU_INLINE void score(const float* q, const float* w, std::int64_t heads, const float* keys,
                         std::int64_t count, float* dots, float* logits) {
  dot_rows(q, heads, keys, count, kIndexDim, dots, kKeysAtATime);
  for (std::int64_t j = 0; j < count; ++j) logits[j] = 0;
  for (std::int64_t h = 0; h < heads; ++h) {
    const float* d = dots + h * kKeysAtATime;
    // NaN passes: a poisoned key shows.
    for (std::int64_t j = 0; j < count; ++j) logits[j] += (d[j] < 0 ? 0.0F : d[j]) * w[h];
  }
}

struct Buffers {
  float* queries;
  float* keys;
  float* dots;
};
Buffers buffers(std::int64_t tokens, std::int64_t heads) {
  static thread_local Scratch<float> queries, keys, dots;
  return {queries.get(tokens * heads * kIndexDim), keys.get(kKeysAtATime * kIndexDim),
          dots.get(heads * kKeysAtATime)};
}

WG_CPU_INLINE void score_tokens(const MqaLogitsPrefill& p, std::int64_t first, std::int64_t count,
                                const Buffers& b) {
  const std::int64_t bytes = index_value_bytes(p.format);
  widen_queries(p.format, p.q, p.q_scales, first * p.heads, count * p.heads, b.queries);
  const std::int64_t begin = *std::min_element(p.key_start + first, p.key_start + first + count);
  const std::int64_t end = *std::max_element(p.key_end + first, p.key_end + first + count);
  for (std::int64_t key = begin; key < end; key += kKeysAtATime) {
    const std::int64_t keys = std::min(kKeysAtATime, end - key);
    for (std::int64_t j = 0; j < keys; ++j) {
      read_index_row(p.format, p.values + (key + j) * bytes,
                     p.scales + (key + j) * kIndexScaleBytes, b.keys + j * kIndexDim);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t t = first + i;
      const std::int64_t from = std::max<std::int64_t>(key, p.key_start[t]);
      const std::int64_t to = std::min<std::int64_t>(key + keys, p.key_end[t]);
      if (from >= to) continue;
      score(b.queries + i * p.heads * kIndexDim, p.w + t * p.heads, p.heads,
            b.keys + (from - key) * kIndexDim, to - from, b.dots,
            p.logits + t * p.logits_stride + from);
    }
  }
}

WG_CPU_INLINE void mqa_logits_prefill_body(const MqaLogitsPrefill& p) {
  const Buffers b = buffers(kTokensAtATime, p.heads);
  for (std::int64_t t = 0; t < p.tokens; t += kTokensAtATime) {
    score_tokens(p, t, std::min(kTokensAtATime, p.tokens - t), b);
  }
}

WG_CPU_INLINE void mqa_logits_paged_body(const MqaLogitsPaged& p) {
  const Buffers b = buffers(1, p.heads);
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    widen_queries(p.format, p.q, p.q_scales, t * p.heads, p.heads, b.queries);
    for (std::int64_t key = 0; key < p.context_lens[t]; key += kKeysAtATime) {
      const std::int64_t keys = std::min<std::int64_t>(kKeysAtATime, p.context_lens[t] - key);
      for (std::int64_t j = 0; j < keys; ++j) {
        const IndexRow k = index_row(p.format, p.pages, p.table.slot(t / p.next_n, key + j));
        read_index_row(p.format, k.values, k.scale, b.keys + j * kIndexDim);
      }
      score(b.queries, p.w + t * p.heads, p.heads, b.keys, keys, b.dots,
            p.logits + t * p.logits_stride + key);
    }
  }
}

}  // namespace

WG_CPU_VARIANTS(mqa_logits_prefill, MqaLogitsPrefill)
WG_CPU_VARIANTS(mqa_logits_paged, MqaLogitsPaged)

}  // namespace warmgate::kernels::cpu
