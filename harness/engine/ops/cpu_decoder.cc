// What surrounds attention, on the host.
#include <algorithm>
#include <numeric>
#include <vector>

#include "harness/engine/ops/cpu_tensor.h"
#include "harness/engine/ops/cpu_threads.h"
#include "harness/engine/ops/decoder.h"
#include "kernels/cpu/decoder.h"
#include "kernels/cpu/gemm.h"

namespace warmgate::engine::ops {

using namespace host;

namespace {

kernel::Copies copies_of(const Tensor& residual, std::int64_t tokens) {
  return {tokens, residual.dim(1), residual.dim(2)};
}

}  // namespace

void run(const Embed& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::embed({p.out.rows(), p.out.last(), p.table.rows(), p.first_id, i64(p.ids), bf16(p.table),
                 bf16(p.out)});
}

void run(const SpreadCopies& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::spread_copies(copies_of(p.residual, p.x.rows()), bf16(p.x), bf16(p.residual));
}

void run(const HyperConnectionPre& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::first_copy(copies_of(p.residual, p.residual.rows()), bf16(p.residual), bf16(p.x));
}

void run(const HyperConnectionPost& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::add_to_copies(copies_of(p.residual, p.y.rows()), bf16(p.y), bf16(p.residual));
}

void run(const Moe& p, const Device& device) {
  need_host(p.kernel, device);
  const bool shared = p.shared_w13.present();
  kernel::GatedMlp m;
  m.tokens = p.x.rows();
  m.x = bf16(p.x);
  m.w13 = shared ? weights(p.shared_w13) : first_matrix(p.w13);
  m.w2 = shared ? weights(p.shared_w2) : first_matrix(p.w2);
  m.y = bf16(p.y);
  share_rows(m.tokens, 8, m.tokens * (m.w13.rows * m.w13.columns + m.w2.rows * m.w2.columns),
             [&](std::int64_t begin, std::int64_t end) {
               kernel::GatedMlp part = m;
               part.tokens = end - begin;
               part.x += begin * m.w13.columns;
               part.y += begin * m.w2.rows;
               kernel::gated_mlp(part);
             });
}

void run(const MeanOfCopies& p, const Device& device) {
  need_host(p.kernel, device);
  // Row by row: a tap is some columns of a wider tensor.
  for (std::int64_t t = 0; t < p.residual.rows(); ++t) {
    kernel::mean_of_copies(copies_of(p.residual, 1), bf16(p.residual) + t * p.residual.strides[0],
                           bf16(p.out) + t * p.out.strides[0]);
  }
}

void run(const SelectRows& p, const Device& device) {
  need_host(p.kernel, device);
  std::vector<std::int64_t> rows(p.picked.begin(), p.picked.end());
  if (rows.empty()) {
    rows.resize(static_cast<std::size_t>(p.out.rows()));
    std::iota(rows.begin(), rows.end(), 0);
  }
  kernel::select_rows(p.out.rows(), p.out.last(), rows.data(), bf16(p.hidden), bf16(p.out));
}

void run(const Sample& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::Argmax a;
  a.tokens = p.logits.rows();
  a.width = p.logits.last();
  a.stride = p.logits.strides[0];
  a.logits = fp32(p.logits);
  a.ids = i64(p.ids);
  kernel::argmax(a);
}

void run(const MarkovBias& p, const Device& device) {
  need_host(p.kernel, device);
  const std::int64_t requests = p.logits.rows(), rank = p.w1.last(), vocab = p.logits.last();
  std::vector<kernel::Bf16> low(static_cast<std::size_t>(requests * rank));
  kernel::embed({requests, rank, p.w1.rows(), 0, i64(p.previous), bf16(p.w1), low.data()});
  kernel::Gemm g;
  g.tokens = requests;
  g.x = low.data();
  g.w = weights(p.w2);
  g.y_type = kernel::OutputType::kFp32;
  g.y = fp32(p.logits);
  kernel::gemm(g);
  if (!p.base.present()) return;
  for (std::int64_t b = 0; b < requests; ++b) {
    const std::int64_t row = std::min(b * p.per_request + p.position, p.base.rows() - 1);
    float* out = fp32(p.logits) + b * p.logits.strides[0];
    const float* base = fp32(p.base) + row * p.base.strides[0];
    for (std::int64_t v = 0; v < vocab; ++v) out[v] += base[v];
  }
}

}  // namespace warmgate::engine::ops
