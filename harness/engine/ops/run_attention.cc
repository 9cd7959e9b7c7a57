// Sparse attention.
#include "harness/engine/ops/run_tensor.h"
#include "harness/engine/ops/sparse_attention.h"

namespace warmgate::engine::ops {

using namespace glue;

void run(const DequantGather& p, const Device& device) {
  kernel::DequantGather g;
  g.requests = p.kv.rows();
  g.ratio = p.ratio;
  g.offset = p.offset;
  g.request_stride = p.kv.strides[0];
  g.seq_lens = i32(p.lens) + p.first_request;
  g.gather_lens = i32(p.gather_lens);
  g.pages = pages(p.cache);
  g.table = table(p.table, p.cache.dim(1), p.first_request);
  g.kv = bf16(p.kv);
  on(device, p.kernel).dequant_gather(g);
}

void run(const SparsePrefill& p, const Device& device) {
  kernel::SparsePrefill a;
  a.tokens = p.q.rows();
  a.heads = p.q.dim(1);
  a.width = p.indices.last();
  a.q = bf16(p.q);
  a.kv = bf16(p.kv);
  a.indices = i32(p.indices);
  a.lens = i32(p.lens);
  a.sink = fp32(p.sink);
  a.out = bf16(p.out);
  a.keys = p.kv.rows();
  a.whole_rows = !p.honours_lens;
  on(device, p.kernel).sparse_prefill(a);
}

void run(const SparseDecode& p, const Device& device) {
  kernel::SparseDecode a;
  a.tokens = p.q.rows();
  a.heads = p.q.dim(2);
  a.width = p.indices.last();
  a.q = bf16(p.q);
  a.window = pages(p.cache);
  a.indices = i32(p.indices);
  a.lens = i32(p.lens);
  if (p.extra_cache.present()) {
    a.extra_width = p.extra_indices.last();
    a.extra = pages(p.extra_cache);
    a.extra_indices = i32(p.extra_indices);
    a.extra_lens = i32(p.extra_lens);
  }
  a.sink = fp32(p.sink);
  a.out = bf16(p.out);
  a.counts_padding = p.counts_padding;
  on(device, p.kernel).sparse_decode(a);
}

void run(const GlobalTopkIndices& p, const Device& device) {
  on(device, p.kernel)
      .global_topk_indices({p.global.rows(), p.global.last(), i32(p.local), i32(p.token_to_req),
                            table(p.table, p.block_rows), bytes(p.is_valid), i32(p.global),
                            i32(p.lens)});
}

// How tokens are split over processors is decided where attention runs: there are no tiles to share
// out on the host, and on a GPU each launch reads the lengths itself.
void run(const TilePlan& p, const Device& device) { on(device, p.kernel); }

void run(const ZeroFill& p, const Device& device) {
  on(device, p.kernel);
  device.fill(p.out.address, p.out.payload_bytes(), 0);
}

}  // namespace warmgate::engine::ops
