// What surrounds attention.
#include <numeric>
#include <vector>

#include "harness/engine/ops/decoder.h"
#include "harness/engine/ops/run_tensor.h"

namespace warmgate::engine::ops {

using namespace glue;

namespace {

kernel::Copies copies_of(const Tensor& residual, std::int64_t tokens) {
  return {tokens, residual.dim(1), residual.dim(2)};
}

}  // namespace

void run(const Embed& p, const Device& device) {
  on(device, p.kernel)
      .embed({p.out.rows(), p.out.last(), p.table.rows(), p.first_id, i64(p.ids), bf16(p.table),
              bf16(p.out)});
}

void run(const SpreadCopies& p, const Device& device) {
  on(device, p.kernel)
      .spread_copies(copies_of(p.residual, p.x.rows()), bf16(p.x), bf16(p.residual));
}

void run(const HyperConnectionPre& p, const Device& device) {
  on(device, p.kernel)
      .first_copy(copies_of(p.residual, p.residual.rows()), bf16(p.residual), bf16(p.x));
}

void run(const HyperConnectionPost& p, const Device& device) {
  on(device, p.kernel)
      .add_to_copies(copies_of(p.residual, p.y.rows()), bf16(p.y), bf16(p.residual));
}

void run(const Moe& p, const Device& device) {
  const bool shared = p.shared_w13.present();
  kernel::GatedMlp m;
  m.tokens = p.x.rows();
  m.x = bf16(p.x);
  m.w13 = shared ? weights(p.shared_w13) : first_matrix(p.w13);
  m.w2 = shared ? weights(p.shared_w2) : first_matrix(p.w2);
  m.y = bf16(p.y);
  on(device, p.kernel).gated_mlp(m);
}

void run(const MeanOfCopies& p, const Device& device) {
  kernel::Copies shape = copies_of(p.residual, p.residual.rows());
  shape.x_stride = p.out.strides[0];  // a tap is some columns of a wider tensor
  on(device, p.kernel).mean_of_copies(shape, bf16(p.residual), bf16(p.out));
}

void run(const SelectRows& p, const Device& device) {
  std::vector<std::int64_t> rows(p.picked.begin(), p.picked.end());
  if (rows.empty()) {
    rows.resize(static_cast<std::size_t>(p.out.rows()));
    std::iota(rows.begin(), rows.end(), 0);
  }
  on(device, p.kernel)
      .select_rows(p.out.rows(), p.out.last(), rows.data(), bf16(p.hidden), bf16(p.out));
}

void run(const Sample& p, const Device& device) {
  kernel::Argmax a;
  a.tokens = p.logits.rows();
  a.width = p.logits.last();
  a.stride = p.logits.strides[0];
  a.logits = fp32(p.logits);
  a.ids = i64(p.ids);
  on(device, p.kernel).argmax(a);
}

void run(const MarkovBias& p, const Device& device) {
  kernel::MarkovBias m;
  m.tokens = p.logits.rows();
  m.vocab = p.logits.last();
  m.rank = p.w1.last();
  m.previous = i64(p.previous);
  m.w1 = weights(p.w1);
  m.w2 = weights(p.w2);
  m.logits = fp32(p.logits);
  m.logits_stride = p.logits.strides[0];
  if (p.base.present()) {
    m.base = fp32(p.base);
    m.base_rows = p.base.rows();
    m.base_stride = p.base.strides[0];
    m.per_request = p.per_request;
    m.position = p.position;
  }
  on(device, p.kernel).markov_bias(m);
}

}  // namespace warmgate::engine::ops
