// The indexer of c4a layers.
#include "harness/engine/ops/indexer.h"
#include "harness/engine/ops/run_tensor.h"

namespace warmgate::engine::ops {

using namespace glue;

namespace {

kernel::IndexFormat format_of(bool fp4) {
  return fp4 ? kernel::IndexFormat::kMxfp4 : kernel::IndexFormat::kFp8;
}

}  // namespace

void run(const IndexerQuant& p, const Device& device) {
  on(device, p.kernel)
      .indexer_quant({p.iq.rows(), p.iq.dim(1), format_of(p.q.dtype == DType::kFp4), bf16(p.iq),
                      bf16(p.weights), fp32(p.cos_sin), i64(p.positions), bytes(p.q),
                      bytes(p.q_scales), fp32(p.w)});
}

void run(const GatherIndexerKeys& p, const Device& device) {
  kernel::GatherIndexerKeys g;
  g.requests = p.requests;
  g.format = format_of(p.values.last() < kernel::kIndexDim);
  g.seq_lens = i32(p.seq_lens) + p.first_request;
  g.pages = pages(p.cache);
  g.table = table(p.table, p.cache.dim(1), p.first_request);
  g.values = bytes(p.values);
  g.scales = bytes(p.scales);
  on(device, p.kernel).gather_indexer_keys(g);
}

void run(const MqaLogitsPrefill& p, const Device& device) {
  kernel::MqaLogitsPrefill m;
  m.tokens = p.q.rows();
  m.heads = p.q.dim(1);
  m.format = format_of(p.q.dtype == DType::kFp4);
  m.q = bytes(p.q);
  m.q_scales = bytes(p.q_scales);
  m.w = fp32(p.w);
  m.values = bytes(p.values);
  m.scales = bytes(p.scales);
  m.key_start = i32(p.key_start);
  m.key_end = i32(p.key_end);
  m.logits = fp32(p.logits);
  m.logits_stride = p.logits.strides[0];
  on(device, p.kernel).mqa_logits_prefill(m);
}

void run(const MqaLogitsPaged& p, const Device& device) {
  kernel::MqaLogitsPaged m;
  m.tokens = p.q.rows();
  m.heads = p.q.dim(1);
  m.next_n = p.per_request;
  m.format = format_of(p.q.dtype == DType::kFp4);
  m.q = bytes(p.q);
  m.q_scales = bytes(p.q_scales);
  m.w = fp32(p.w);
  m.pages = pages(p.cache);
  m.table = table(p.table, p.cache.dim(1));
  m.context_lens = i32(p.context_lens);
  m.logits = fp32(p.logits);
  m.logits_stride = p.logits.strides[0];
  on(device, p.kernel).mqa_logits_paged(m);
}

void run(const TopkPerRow& p, const Device& device) {
  on(device, p.kernel)
      .topk_per_row({p.logits.rows(), p.indices.last(), fp32(p.logits), p.logits.strides[0],
                     i32(p.starts), i32(p.lens), i32(p.indices), p.indices.strides[0]});
}

void run(const ClearTopk& p, const Device& device) {
  // All bytes of -1 are 0xFF.
  device.fill(p.indices.address, 4 * p.tokens * p.indices.strides[0], 0xFF);
}

void run(const FillShortContext& p, const Device& device) {
  on(device, p.kernel)
      .fill_short_context(
          {p.tokens, p.indices.last(), 4, i64(p.positions), i32(p.indices), p.indices.strides[0]});
}

}  // namespace warmgate::engine::ops
