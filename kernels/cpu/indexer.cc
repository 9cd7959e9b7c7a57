#include "kernels/cpu/indexer.h"

#include <cmath>
#include <cstring>

#include "kernels/cpu/index_rows.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/rope.h"
#include "kernels/cpu/variant.h"

namespace warmgate::kernels::cpu {

void encode_index_row(IndexFormat format, const float* channels, std::uint8_t* values,
                      std::uint8_t* scale) {
  write_index_row(format, channels, values, scale);
}

void decode_index_row(IndexFormat format, const std::uint8_t* values, const std::uint8_t* scale,
                      float* out) {
  read_index_row(format, values, scale, out);
}

namespace {

WG_CPU_INLINE void indexer_quant_body(const IndexerQuant& p) {
  const bool fp8 = p.format == IndexFormat::kFp8;
  const float factor =
      1.0F / std::sqrt(static_cast<float>(kIndexDim)) / std::sqrt(static_cast<float>(p.heads));
  float x[kIndexDim];
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const float* angles = p.cos_sin + p.positions[t] * kRopeDims;
    for (std::int64_t h = 0; h < p.heads; ++h) {
      const std::int64_t row = t * p.heads + h;
      widen(p.iq + row * kIndexDim, kIndexDim, x);
      rotate(x + kIndexDim - kRopeDims, angles);
      round_to_bf16(x, kIndexDim);
      std::uint8_t* values = p.q + row * index_value_bytes(p.format);
      p.w[row] = to_float(p.weights[row]) * factor;
      if (fp8) {
        float s = 0;
        write_index_row(p.format, x, values, reinterpret_cast<std::uint8_t*>(&s));
        p.w[row] *= s;
      } else {
        write_index_row(p.format, x, values, p.q_scales + row * kIndexScaleBytes);
      }
    }
  }
}

}  // namespace

WG_CPU_VARIANTS(indexer_quant, IndexerQuant)

void gather_indexer_keys(const GatherIndexerKeys& p) {
  const std::int64_t bytes = index_value_bytes(p.format);
  std::int64_t key = 0;
  for (std::int64_t b = 0; b < p.requests; ++b) {
    for (std::int64_t i = 0; i < p.seq_lens[b] / p.ratio; ++i, ++key) {
      const IndexRow row = index_row(p.format, p.pages, p.table.slot(b, i));
      std::memcpy(p.values + key * bytes, row.values, static_cast<std::size_t>(bytes));
      std::memcpy(p.scales + key * kIndexScaleBytes, row.scale, kIndexScaleBytes);
    }
  }
}

}  // namespace warmgate::kernels::cpu
