// Projections and norms on the host.
#include <algorithm>

#include "harness/engine/ops/cpu_tensor.h"
#include "harness/engine/ops/cpu_threads.h"
#include "harness/engine/ops/gemm.h"
#include "harness/engine/ops/output_projection.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/output_projection.h"

namespace warmgate::engine::ops {

using namespace host;

void run(const Gemm& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::Gemm g;
  g.tokens = p.x.rows();
  g.x = bf16(p.x);
  g.w = weights(p.w, p.whole, p.first_row());
  g.y_type = p.y.dtype == DType::kFp32 ? kernel::OutputType::kFp32 : kernel::OutputType::kBf16;
  g.y = at<void>(p.y);
  g.x_stride = p.x.strides[0];
  g.y_stride = p.y.strides[0];
  const std::int64_t element = bits_of(p.y.dtype) / 8;
  // Outputs are shared out, so that each weight is decoded once. A block of scales starts every
  // 128.
  share_rows(g.w.rows, 128, g.tokens * g.w.rows * g.w.columns,
             [&](std::int64_t begin, std::int64_t end) {
               kernel::Gemm part = g;
               part.w = rows_of(g.w, begin, end);
               part.y = static_cast<char*>(g.y) + begin * element;
               kernel::gemm(part);
             });
}

void run(const RmsNorm& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::rms_norm({p.x.rows(), p.x.last(), bf16(p.x), bf16(p.weight), bf16(p.y),
                    static_cast<float>(p.eps), p.x.strides[0], p.y.strides[0]});
}

void run(const FusedQkvNorm& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::fused_qkv_norm({p.qkv.rows(), p.qr.last(), p.kv.last(), bf16(p.qkv), bf16(p.q_norm),
                          bf16(p.kv_norm), bf16(p.qr), bf16(p.kv), static_cast<float>(p.eps)});
}

void run(const InverseRopeQuant& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::inverse_rope_quant({p.o.rows(), p.o.dim(1), p.q.dim(1), p.q.dim(2), bf16(p.o),
                              fp32(p.cos_sin), i64(p.positions), bytes(p.q), fp32(p.scales)});
}

void run(const GroupedProjection& p, const Device& device) {
  need_host(p.kernel, device);
  const std::int64_t groups = p.x.dim(1), inputs = p.x.dim(2), rank = p.z.dim(2);
  share_rows(p.x.rows(), 8, p.x.rows() * p.w.elements(), [&](std::int64_t begin, std::int64_t end) {
    kernel::grouped_projection({end - begin, groups, rank, inputs,
                                bytes(p.x) + begin * groups * inputs,
                                fp32(p.scales) + begin * groups * p.scales.last(), weights(p.w),
                                bf16(p.z) + begin * groups * rank});
  });
}

}  // namespace warmgate::engine::ops
