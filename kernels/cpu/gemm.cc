#include "kernels/cpu/gemm.h"

#include <algorithm>

#include "kernels/cpu/scratch.h"
#include "kernels/cpu/variant.h"
#include "kernels/cpu/weights.h"

namespace warmgate::kernels::cpu {

namespace {

constexpr std::int64_t kRowsAtATime = 4;
constexpr std::int64_t kInputFloats = 1 << 17;  // of x that stay in the second-level cache

struct Destination {
  OutputType type;
  void* y;
  std::int64_t stride;
};

WG_CPU_INLINE void store(const Destination& to, std::int64_t token, std::int64_t column,
                         const float* tile, std::int64_t count) {
  const std::int64_t at = token * to.stride + column;
  if (to.type == OutputType::kFp32) {
    for (std::int64_t i = 0; i < count; ++i) static_cast<float*>(to.y)[at + i] = tile[i];
  } else {
    for (std::int64_t i = 0; i < count; ++i) static_cast<Bf16*>(to.y)[at + i] = to_bf16(tile[i]);
  }
}

std::int64_t tokens_at_a_time(std::int64_t width) {
  return std::max<std::int64_t>(kInputFloats / std::max<std::int64_t>(width, 1) / 3, 1) * 3;
}

// x [tokens,padded] floats times rows begin..end of w → columns 0.. of `to`.
WG_CPU_INLINE void multiply(const float* x, std::int64_t tokens, const Weights& w,
                            std::int64_t begin, std::int64_t end, const Destination& to) {
  static thread_local Scratch<float> rows_scratch, tile_scratch;
  const std::int64_t width = padded(w.columns);
  float* rows = rows_scratch.get(kRowsAtATime * width);
  float* tile = tile_scratch.get(tokens * kRowsAtATime);
  for (std::int64_t row = begin; row < end; row += kRowsAtATime) {
    const std::int64_t count = std::min(kRowsAtATime, end - row);
    for (std::int64_t i = 0; i < count; ++i) weight_row(w, row + i, rows + i * width);
    dot_rows(x, tokens, rows, count, width, tile, kRowsAtATime);
    for (std::int64_t t = 0; t < tokens; ++t) {
      store(to, t, row - begin, tile + t * kRowsAtATime, count);
    }
  }
}

WG_CPU_INLINE void gemm_body(const Gemm& p) {
  static thread_local Scratch<float> scratch;
  const std::int64_t width = padded(p.w.columns);
  const std::int64_t x_stride = p.x_stride > 0 ? p.x_stride : p.w.columns;
  const std::int64_t y_stride = p.y_stride > 0 ? p.y_stride : p.w.rows;
  const std::int64_t block = tokens_at_a_time(width);
  float* x = scratch.get(std::min(block, p.tokens) * width);
  for (std::int64_t first = 0; first < p.tokens; first += block) {
    const std::int64_t count = std::min(block, p.tokens - first);
    for (std::int64_t t = 0; t < count; ++t) {
      widen(p.x + (first + t) * x_stride, p.w.columns, x + t * width);
    }
    const std::int64_t element = p.y_type == OutputType::kFp32 ? 4 : 2;
    multiply(x, count, p.w, 0, p.w.rows,
             {p.y_type, static_cast<char*>(p.y) + first * y_stride * element, y_stride});
  }
}

WG_CPU_INLINE void grouped_projection_body(const GroupedProjection& p) {
  static thread_local Scratch<float> scratch;
  const std::int64_t width = padded(p.inputs);
  const std::int64_t block = tokens_at_a_time(width);
  const std::int64_t scales = (p.inputs + kScaleBlock - 1) / kScaleBlock;
  float* x = scratch.get(std::min(block, p.tokens) * width);
  for (std::int64_t first = 0; first < p.tokens; first += block) {
    const std::int64_t count = std::min(block, p.tokens - first);
    for (std::int64_t g = 0; g < p.groups; ++g) {
      for (std::int64_t t = 0; t < count; ++t) {
        const std::int64_t row = (first + t) * p.groups + g;
        const E4m3* in = p.x + row * p.inputs;
        const float* scale = p.x_scales + row * scales;
        float* out = x + t * width;
        for (std::int64_t b = 0; b < scales; ++b) {
          const std::int64_t end = std::min((b + 1) * kScaleBlock, p.inputs);
          const float s = scale[b];
          for (std::int64_t i = b * kScaleBlock; i < end; ++i) out[i] = e4m3_to_float(in[i]) * s;
        }
        for (std::int64_t i = p.inputs; i < width; ++i) out[i] = 0;
      }
      multiply(x, count, p.w, g * p.rank, (g + 1) * p.rank,
               {OutputType::kBf16, p.z + (first * p.groups + g) * p.rank, p.groups * p.rank});
    }
  }
}

struct Activate {
  std::int64_t tokens, inter;
  const Bf16* gate_up;
  Bf16* h;
  float limit;
};
WG_CPU_INLINE void activate_body(const Activate& p) {
  const float limit = p.limit > 0 ? p.limit : __builtin_inff();
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const Bf16* gates = p.gate_up + t * 2 * p.inter;
    const Bf16* ups = gates + p.inter;
    Bf16* h = p.h + t * p.inter;
    for (std::int64_t i = 0; i < p.inter; ++i) {
      float gate = to_float(gates[i]), up = to_float(ups[i]);
      gate = gate > limit ? limit : gate;
      up = up > limit ? limit : up < -limit ? -limit : up;
      h[i] = to_bf16(gate / (1.0F + exponential(-gate)) * up);
    }
  }
}
WG_CPU_VARIANTS(activate, Activate)

}  // namespace

WG_CPU_VARIANTS(gemm, Gemm)
WG_CPU_VARIANTS(grouped_projection, GroupedProjection)

void gated_mlp(const GatedMlp& p) {
  static thread_local Scratch<Bf16> gate_up_scratch, h_scratch;
  const std::int64_t inter = p.w2.columns;
  Bf16* gate_up = gate_up_scratch.get(p.tokens * 2 * inter);
  Bf16* h = h_scratch.get(p.tokens * inter);
  gemm({p.tokens, p.x, p.w13, OutputType::kBf16, gate_up});
  activate({p.tokens, inter, gate_up, h, p.limit});
  gemm({p.tokens, h, p.w2, OutputType::kBf16, p.y});
}

}  // namespace warmgate::kernels::cpu
