#include "kernels/cpu/pages.h"

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/page_rows.h"
#include "kernels/cpu/variant.h"

namespace warmgate::kernels::cpu {

void encode_ds_mla(const float* channels, std::uint8_t* data, std::uint8_t* scales) {
  write_ds_mla(channels, {data, scales});
}

void decode_ds_mla(const Pages& pages, std::int64_t slot, float* out) {
  read_ds_mla(ds_mla_row(pages, slot), out);
}

void decode_ds_mla(const Pages& pages, std::int64_t slot, Bf16* out) {
  float row[kHeadDim];
  decode_ds_mla(pages, slot, row);
  for (std::int64_t i = 0; i < kHeadDim; ++i) out[i] = to_bf16(row[i]);
}

namespace {

WG_CPU_INLINE void insert_ds_mla_body(const InsertDsMla& p) {
  float row[kHeadDim];
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    if (p.slots[t] < 0) continue;
    widen(p.k + t * p.k_stride, kHeadDim, row);
    write_ds_mla(row, ds_mla_row(p.pages, p.slots[t]));
  }
}

WG_CPU_INLINE void dequant_gather_body(const DequantGather& p) {
  float row[kHeadDim];
  for (std::int64_t b = 0; b < p.requests; ++b) {
    const std::int64_t count =
        p.gather_lens != nullptr ? p.gather_lens[b] : p.seq_lens[b] / p.ratio;
    const std::int64_t begin = p.gather_lens != nullptr ? p.seq_lens[b] - count : 0;
    Bf16* out = p.kv + b * p.request_stride + p.offset * kHeadDim;
    for (std::int64_t i = 0; i < count; ++i, out += kHeadDim) {
      read_ds_mla(ds_mla_row(p.pages, p.table.slot(b, begin + i)), row);
      for (std::int64_t c = 0; c < kHeadDim; ++c) out[c] = to_bf16(row[c]);
    }
  }
}

}  // namespace

WG_CPU_VARIANTS(insert_ds_mla, InsertDsMla)
WG_CPU_VARIANTS(dequant_gather, DequantGather)

}  // namespace warmgate::kernels::cpu
