// The indexer of c4a layers: quantised queries and keys, scores. Heads of 128 channels.
// Origin: vLLM at d40c3e3c00, models/deepseek_v4/common/ops/fused_indexer_q.py,
// model_executor/layers/sparse_attn_indexer.py.
#pragma once

#include <cstdint>

#include "kernels/cpu/pages.h"

namespace warmgate::kernels::cpu {

constexpr std::int64_t kIndexDim = 128;
constexpr std::int64_t kMxRun = 32;  // values that share a scale in MXFP4

/// kFp8: 128 e4m3 bytes and one fp32 scale a row. kMxfp4: 64 bytes of nibbles and four ue8m0.
/// A page of `rows` rows: all values, then rows·4 scale bytes.
enum class IndexFormat : std::uint8_t { kFp8, kMxfp4 };
constexpr std::int64_t index_value_bytes(IndexFormat f) {
  return f == IndexFormat::kFp8 ? kIndexDim : kIndexDim / 2;
}

/// One row of 128 channels. fp8: s = 2^ceil(log2(max(amax,1e-4)/448)), values x/s as e4m3, scale s
/// (fp32, 4 bytes). mxfp4: per 32 values s = 2^ceil(log2(max(amax,6·2^-126)/6)), e2m1.
/// values [128|64] bytes, scale [4] bytes.
void encode_index_row(IndexFormat format, const float* channels, std::uint8_t* values,
                      std::uint8_t* scale);
/// → fp32 [128], exactly value · scale.
void decode_index_row(IndexFormat format, const std::uint8_t* values, const std::uint8_t* scale,
                      float* out);

/// iq [tokens,heads,128] bf16, weights [tokens,heads] bf16, cos_sin [P,64] fp32, positions i64 →
/// q [tokens,heads,128] e4m3 or [tokens,heads,64] nibbles, w [tokens,heads] fp32.
/// Rotation of the last 64 in fp32, rounding of all to bf16, quantisation per token and head.
/// w = weights · 128^-0.5 · heads^-0.5, with fp8 also · the query's scale (q_scales is not
/// written); mxfp4: q_scales [tokens,heads,4] ue8m0.
struct IndexerQuant {
  std::int64_t tokens = 0, heads = 0;
  IndexFormat format = IndexFormat::kFp8;
  const Bf16* iq = nullptr;
  const Bf16* weights = nullptr;
  const float* cos_sin = nullptr;
  const std::int64_t* positions = nullptr;
  std::uint8_t* q = nullptr;
  Ue8m0* q_scales = nullptr;
  float* w = nullptr;
};
void indexer_quant(const IndexerQuant& p);

/// The first seq_len/ratio rows of each request, one request behind the other:
/// values [n,128|64] bytes, scales [n,4] bytes.
struct GatherIndexerKeys {
  std::int64_t requests = 0, ratio = 4;
  IndexFormat format = IndexFormat::kFp8;
  const std::int32_t* seq_lens = nullptr;
  Pages pages;
  BlockTable table;
  std::uint8_t* values = nullptr;
  std::uint8_t* scales = nullptr;
};
void gather_indexer_keys(const GatherIndexerKeys& p);

/// logits[t,j] = Σ_head ReLU(q[t,head]·k[j]) · w[t,head], fp32, heads ascending, for
/// j = key_start[t]..key_end[t]-1 (columns of the gathered keys); other columns stay as they were.
/// q, q_scales, w as IndexerQuant wrote them; logits [tokens,stride].
struct MqaLogitsPrefill {
  std::int64_t tokens = 0, heads = 0;
  IndexFormat format = IndexFormat::kFp8;
  const std::uint8_t* q = nullptr;
  const Ue8m0* q_scales = nullptr;
  const float* w = nullptr;
  const std::uint8_t* values = nullptr;
  const std::uint8_t* scales = nullptr;
  const std::int32_t* key_start = nullptr;
  const std::int32_t* key_end = nullptr;
  float* logits = nullptr;
  std::int64_t logits_stride = 0;
};
void mqa_logits_prefill(const MqaLogitsPrefill& p);

/// The same bits straight from the pages: row t belongs to table row t / next_n and sees entries
/// 0..context_lens[t]-1 (i32, in entries). Columns beyond stay as they were.
struct MqaLogitsPaged {
  std::int64_t tokens = 0, heads = 0, next_n = 1;
  IndexFormat format = IndexFormat::kFp8;
  const std::uint8_t* q = nullptr;
  const Ue8m0* q_scales = nullptr;
  const float* w = nullptr;
  Pages pages;
  BlockTable table;
  const std::int32_t* context_lens = nullptr;
  float* logits = nullptr;
  std::int64_t logits_stride = 0;
};
void mqa_logits_paged(const MqaLogitsPaged& p);

}  // namespace warmgate::kernels::cpu
