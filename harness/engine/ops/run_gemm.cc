// Projections and norms.
#include "harness/engine/ops/gemm.h"
#include "harness/engine/ops/output_projection.h"
#include "harness/engine/ops/run_tensor.h"

namespace warmgate::engine::ops {

using namespace glue;

void run(const Gemm& p, const Device& device) {
  kernel::Gemm g;
  g.tokens = p.x.rows();
  g.x = bf16(p.x);
  g.w = weights(p.w, p.whole, p.first_row());
  g.y_type = p.y.dtype == DType::kFp32 ? kernel::OutputType::kFp32 : kernel::OutputType::kBf16;
  g.y = at<void>(p.y);
  g.x_stride = p.x.strides[0];
  g.y_stride = p.y.strides[0];
  on(device, p.kernel).gemm(g);
}

void run(const RmsNorm& p, const Device& device) {
  on(device, p.kernel)
      .rms_norm({p.x.rows(), p.x.last(), bf16(p.x), bf16(p.weight), bf16(p.y),
                 static_cast<float>(p.eps), p.x.strides[0], p.y.strides[0]});
}

void run(const FusedQkvNorm& p, const Device& device) {
  on(device, p.kernel)
      .fused_qkv_norm({p.qkv.rows(), p.qr.last(), p.kv.last(), bf16(p.qkv), bf16(p.q_norm),
                       bf16(p.kv_norm), bf16(p.qr), bf16(p.kv), static_cast<float>(p.eps)});
}

void run(const InverseRopeQuant& p, const Device& device) {
  on(device, p.kernel)
      .inverse_rope_quant({p.o.rows(), p.o.dim(1), p.q.dim(1), p.q.dim(2), bf16(p.o),
                           fp32(p.cos_sin), i64(p.positions), bytes(p.q), fp32(p.scales)});
}

void run(const GroupedProjection& p, const Device& device) {
  on(device, p.kernel)
      .grouped_projection({p.x.rows(), p.x.dim(1), p.z.dim(2), p.x.dim(2), bytes(p.x),
                           fp32(p.scales), weights(p.w), bf16(p.z)});
}

}  // namespace warmgate::engine::ops
