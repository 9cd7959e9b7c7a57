#include "kernels/cpu/decoder.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/cpu/variant.h"

namespace warmgate::kernels::cpu {

void embed(const Embed& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const std::int64_t row = p.ids[t] - p.first_id;
    Bf16* out = p.out + t * p.width;
    if (row < 0 || row >= p.rows) {
      std::fill_n(out, p.width, Bf16{0});
    } else {
      std::copy_n(p.table + row * p.width, p.width, out);
    }
  }
}

void spread_copies(const Copies& shape, const Bf16* x, Bf16* residual) {
  for (std::int64_t t = 0; t < shape.tokens; ++t, x += shape.width) {
    for (std::int64_t c = 0; c < shape.copies; ++c) {
      residual = std::copy_n(x, shape.width, residual);
    }
  }
}

void first_copy(const Copies& shape, const Bf16* residual, Bf16* x) {
  for (std::int64_t t = 0; t < shape.tokens; ++t, residual += shape.copies * shape.width) {
    x = std::copy_n(residual, shape.width, x);
  }
}

void add_to_copies(const Copies& shape, const Bf16* y, Bf16* residual) {
  for (std::int64_t t = 0; t < shape.tokens; ++t, y += shape.width) {
    Bf16* first = residual + t * shape.copies * shape.width;
    for (std::int64_t i = 0; i < shape.width; ++i) {
      first[i] = to_bf16(to_float(first[i]) + to_float(y[i]));
    }
    for (std::int64_t c = 1; c < shape.copies; ++c) {
      std::copy_n(first, shape.width, first + c * shape.width);
    }
  }
}

void mean_of_copies(const Copies& shape, const Bf16* residual, Bf16* x) {
  const std::int64_t x_stride = shape.x_stride > 0 ? shape.x_stride : shape.width;
  for (std::int64_t t = 0; t < shape.tokens; ++t) {
    const Bf16* first = residual + t * shape.copies * shape.width;
    for (std::int64_t i = 0; i < shape.width; ++i) {
      float sum = 0;
      for (std::int64_t c = 0; c < shape.copies; ++c) sum += to_float(first[c * shape.width + i]);
      x[t * x_stride + i] = to_bf16(sum / static_cast<float>(shape.copies));
    }
  }
}

void select_rows(std::int64_t count, std::int64_t width, const std::int64_t* rows, const Bf16* x,
                 Bf16* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    out = std::copy_n(x + rows[i] * width, width, out);
  }
}

void argmax(const Argmax& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const float* logits = p.logits + t * p.stride;
    float best = -std::numeric_limits<float>::infinity();
    std::int64_t column = 0;
    for (std::int64_t j = 0; j < p.width; ++j) {
      if (logits[j] > best) best = logits[j], column = j;
    }
    p.ids[t] = p.first_id + column;
    if (p.best != nullptr) p.best[t] = best;
  }
}

void markov_bias(const MarkovBias& p) {
  std::vector<Bf16> low(static_cast<std::size_t>(p.tokens * p.rank));
  embed(
      {p.tokens, p.rank, p.vocab, 0, p.previous, static_cast<const Bf16*>(p.w1.data), low.data()});
  Gemm g;
  g.tokens = p.tokens;
  g.x = low.data();
  g.w = p.w2;
  g.y_type = OutputType::kFp32;
  g.y = p.logits;
  g.y_stride = p.logits_stride;
  gemm(g);
  if (p.base == nullptr) return;
  for (std::int64_t b = 0; b < p.tokens; ++b) {
    const std::int64_t row = std::min(b * p.per_request + p.position, p.base_rows - 1);
    float* out = p.logits + b * p.logits_stride;
    const float* base = p.base + row * p.base_stride;
    for (std::int64_t v = 0; v < p.vocab; ++v) out[v] += base[v];
  }
}

void sum_bf16(std::int64_t elements, std::int64_t count, const Bf16* const* terms, Bf16* out) {
  for (std::int64_t i = 0; i < elements; ++i) {
    float sum = to_float(terms[0][i]);
    for (std::int64_t r = 1; r < count; ++r) sum += to_float(terms[r][i]);
    out[i] = to_bf16(sum);
  }
}

}  // namespace warmgate::kernels::cpu
