// What reads and writes caches: window keys, compressor states and entries.
#include "harness/engine/ops/compressor.h"
#include "harness/engine/ops/query_key.h"
#include "harness/engine/ops/run_tensor.h"

namespace warmgate::engine::ops {

using namespace glue;

void run(const QNormRopeInsert& p, const Device& device) {
  on(device, p.kernel)
      .qnorm_rope_insert({p.q.rows(), p.q.dim(1), p.q_out.dim(1), bf16(p.q), bf16(p.kv),
                          fp32(p.cos_sin), i64(p.positions), i64(p.slots), pages(p.cache),
                          bf16(p.q_out), static_cast<float>(p.eps)});
}

void run(const PadQ& p, const Device& device) {
  on(device, p.kernel).pad_q({p.q.rows(), p.q.dim(1), p.q_out.dim(1), bf16(p.q), bf16(p.q_out)});
}

void run(const SavePartialStates& p, const Device& device) {
  on(device, p.kernel)
      .save_partial_states({p.kv_score.rows(), p.kv_score.last() / 2, p.ape.rows(),
                            fp32(p.kv_score), fp32(p.ape), i64(p.slots), i64(p.positions),
                            pages(p.state)});
}

void run(const CompressWindow& p, const Device& device) {
  kernel::CompressWindow c;
  c.tokens = p.tokens;
  c.ratio = p.ratio;
  c.overlap = p.overlap;
  c.dim = p.width;
  c.state = pages(p.state);
  c.state_table = table(p.table, p.state.dim(1));
  c.token_to_req = i32(p.token_to_req);
  c.positions = i64(p.positions);
  c.norm = bf16(p.norm);
  c.cos_sin = fp32(p.cos_sin);
  c.slots = i64(p.slots);
  // One byte a channel and a scale of four; half a byte; or the layout of attention's own keys.
  c.format = p.cache.last() == p.width + 4       ? kernel::EntryFormat::kIndexerFp8
             : p.cache.last() == p.width / 2 + 4 ? kernel::EntryFormat::kIndexerMxfp4
                                                 : kernel::EntryFormat::kDsMla;
  c.cache = pages(p.cache);
  c.eps = static_cast<float>(p.eps);
  on(device, p.kernel).compress_window(c);
}

}  // namespace warmgate::engine::ops
