#include "kernels/cpu/sparse_attention.h"

#include <algorithm>
#include <bit>

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/page_rows.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/variant.h"

namespace warmgate::kernels::cpu {

namespace {

constexpr std::int64_t kKeysAtATime = 16;  // 32 KiB of floats

// A key where it lies: a bf16 row, or a row of a page.
struct Key {
  const Bf16* row;
  PageRow paged;
};
WG_CPU_INLINE void read_key(const Key& key, float* out) {
  if (key.row != nullptr) {
    widen(key.row, kHeadDim, out);
  } else {
    read_ds_mla(key.paged, out);
  }
}

struct Query {
  std::int64_t heads;
  const Bf16* q;
  const float* sink;
  float scale;
  Bf16* out;
};

// What one token needs: `lines` heads that are computed.
struct Work {
  float* q;          // [lines,512]
  float* keys;       // [kKeysAtATime,512]
  float* scores;     // [lines,count], then their exponentials
  float* sums;       // [lines,512]
  float* tops;       // [lines]
  float* totals;     // [lines]
  std::int32_t* of;  // [heads]: a head's line
};
Work work(std::int64_t heads, std::int64_t count) {
  static thread_local Scratch<float> q, keys, scores, sums, tops, totals;
  static thread_local Scratch<std::int32_t> of;
  return {q.get(heads * kHeadDim),
          keys.get(kKeysAtATime * kHeadDim),
          scores.get(heads * count),
          sums.get(heads * kHeadDim),
          tops.get(heads),
          totals.get(heads),
          of.get(heads)};
}

// Heads of zeros (padding) have equal scores, so one line serves them all, with the same bits.
WG_CPU_INLINE std::int64_t assign_lines(const Query& query, const Work& w) {
  std::int64_t lines = 0;
  std::int32_t zero_line = -1;
  for (std::int64_t h = 0; h < query.heads; ++h) {
    const Bf16* q = query.q + h * kHeadDim;
    std::uint32_t bits = 0;
    for (std::int64_t i = 0; i < kHeadDim; ++i) bits |= q[i];
    if (bits == 0 && zero_line >= 0) {
      w.of[h] = zero_line;
      continue;
    }
    if (bits == 0) zero_line = static_cast<std::int32_t>(lines);
    w.of[h] = static_cast<std::int32_t>(lines);
    widen(q, kHeadDim, w.q + lines * kHeadDim);
    ++lines;
  }
  return lines;
}

// sums += p · key for the keys of a block, in order; channels in registers.
WG_CPU_INLINE void accumulate(const float* p, const float* keys, std::int64_t count, float* sums) {
  constexpr std::int64_t kVectors = 8;
  for (std::int64_t c = 0; c < kHeadDim; c += kVectors * kLanes) {
    Lanes acc[kVectors];
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v) acc[v] = lanes_at(sums + c + v * kLanes);
    for (std::int64_t j = 0; j < count; ++j) {
      const float* key = keys + j * kHeadDim + c;
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v) acc[v] += lanes_at(key + v * kLanes) * p[j];
    }
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v) lanes_at(sums + c + v * kLanes) = acc[v];
  }
}

WG_CPU_INLINE void score_pass(const Key* keys, std::int64_t count, std::int64_t lines, float scale,
                              const Work& w) {
  for (std::int64_t first = 0; first < count; first += kKeysAtATime) {
    const std::int64_t n = std::min(kKeysAtATime, count - first);
    for (std::int64_t j = 0; j < n; ++j) read_key(keys[first + j], w.keys + j * kHeadDim);
    dot_rows(w.q, lines, w.keys, n, kHeadDim, w.scores + first, count);
  }
  for (std::int64_t a = 0; a < lines; ++a) {
    float* s = w.scores + a * count;
    for (std::int64_t j = 0; j < count; ++j) s[j] *= scale;
    float top = s[0];
    for (std::int64_t j = 1; j < count; ++j) top = s[j] > top ? s[j] : top;
    for (std::int64_t j = 0; j < count; ++j) s[j] = exponential(s[j] - top);
    w.tops[a] = top;
    w.totals[a] = 0;
    for (std::int64_t j = 0; j < count; ++j) w.totals[a] += s[j];
  }
}

WG_CPU_INLINE void sum_pass(const Key* keys, std::int64_t count, std::int64_t lines,
                            const Work& w) {
  std::fill_n(w.sums, lines * kHeadDim, 0.0F);
  for (std::int64_t first = 0; first < count; first += kKeysAtATime) {
    const std::int64_t n = std::min(kKeysAtATime, count - first);
    if (count > kKeysAtATime) {  // else the first pass left them there
      for (std::int64_t j = 0; j < n; ++j) read_key(keys[first + j], w.keys + j * kHeadDim);
    }
    for (std::int64_t a = 0; a < lines; ++a) {
      accumulate(w.scores + a * count + first, w.keys, n, w.sums + a * kHeadDim);
    }
  }
}

WG_CPU_INLINE void attend(const Query& query, const Key* keys, std::int64_t count) {
  if (count == 0) {
    std::fill_n(query.out, query.heads * kHeadDim, Bf16{0});
    return;
  }
  const Work w = work(query.heads, count);
  const std::int64_t lines = assign_lines(query, w);
  score_pass(keys, count, lines, query.scale, w);
  sum_pass(keys, count, lines, w);
  for (std::int64_t h = 0; h < query.heads; ++h) {
    Bf16* out = query.out + h * kHeadDim;
    const float sink = query.sink[h];
    if (sink == __builtin_inff()) {
      std::fill_n(out, kHeadDim, Bf16{0});
      continue;
    }
    const float total = w.totals[w.of[h]] + exponential(sink - w.tops[w.of[h]]);
    const float* sums = w.sums + w.of[h] * kHeadDim;
    for (std::int64_t c = 0; c < kHeadDim; ++c) out[c] = to_bf16(sums[c] / total);
  }
}

std::int64_t clamped(std::int32_t len, std::int64_t width) {
  return std::clamp<std::int64_t>(len, 0, width);
}

WG_CPU_INLINE void sparse_prefill_body(const SparsePrefill& p) {
  static thread_local Scratch<Key> scratch;
  Key* keys = scratch.get(p.width);
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const std::int32_t* indices = p.indices + t * p.width;
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < clamped(p.lens[t], p.width); ++i) {
      if (indices[i] >= 0) keys[count++] = {p.kv + indices[i] * kHeadDim, {}};
    }
    const std::int64_t at = t * p.heads * kHeadDim;
    attend({p.heads, p.q + at, p.sink, p.scale, p.out + at}, keys, count);
  }
}

WG_CPU_INLINE std::int64_t collect(const Pages& pages, const std::int32_t* slots,
                                   std::int64_t count, Key* keys) {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (slots[i] >= 0) keys[found++] = {nullptr, ds_mla_row(pages, slots[i])};
  }
  return found;
}

WG_CPU_INLINE void sparse_decode_body(const SparseDecode& p) {
  static thread_local Scratch<Key> scratch;
  Key* keys = scratch.get(p.width + p.extra_width);
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    std::int64_t count = 0;
    if (p.extra_indices != nullptr) {
      count = collect(p.extra, p.extra_indices + t * p.extra_width,
                      clamped(p.extra_lens[t], p.extra_width), keys);
    }
    count += collect(p.window, p.indices + t * p.width, clamped(p.lens[t], p.width), keys + count);
    const std::int64_t at = t * p.heads * kHeadDim;
    attend({p.heads, p.q + at, p.sink, p.scale, p.out + at}, keys, count);
  }
}

}  // namespace

WG_CPU_VARIANTS(sparse_prefill, SparsePrefill)
WG_CPU_VARIANTS(sparse_decode, SparseDecode)

}  // namespace warmgate::kernels::cpu
