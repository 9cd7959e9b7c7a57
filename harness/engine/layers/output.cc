#include "harness/engine/layers/attention.h"
#include "harness/engine/layers/collective_ops.h"
#include "harness/engine/ops/gemm.h"
#include "harness/engine/ops/output_projection.h"

namespace warmgate::engine {

void project_output(const AttentionCall& call, const Tensor& out, const Tensor& y,
                    Activations& act) {
  const Dims& d = call.dims;
  LayerState& layer = call.layer;
  const std::int64_t t = call.tokens;
  const std::int64_t channels = d.heads * d.head_dim / d.o_groups;
  const Tensor q = act.make(DType::kFp8, {t, d.rank_groups, channels});
  const Tensor scales = act.make(DType::kFp32, {t, d.rank_groups, ceil_div(channels, 128)});
  execute(call.exec, layer.ref,
          ops::InverseRopeQuant{out, layer.cos_sin, call.positions, q, scales});
  const Tensor z = act.make(DType::kBf16, {t, d.rank_groups, d.o_lora});
  execute(call.exec, layer.ref, ops::GroupedProjection{q, scales, layer.w(WeightId::kWoA), z});
  const Tensor flat = make_tensor(DType::kBf16, {t, d.rank_groups * d.o_lora}, z.address);
  execute(call.exec, layer.ref, ops::Gemm{"wo_b_gemm", flat, layer.w(WeightId::kWoB), y});
  sum_over_ranks(call.context(), y);
}

}  // namespace warmgate::engine
