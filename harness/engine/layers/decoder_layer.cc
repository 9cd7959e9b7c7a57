#include "harness/engine/layers/decoder_layer.h"

#include "harness/engine/layers/collective_ops.h"
#include "harness/engine/ops/decoder.h"

namespace warmgate::engine {

namespace {

// residual copies → normalised layer input.
Tensor enter(const AttentionCall& call, const Tensor& residual, WeightId fn, WeightId norm,
             Activations& act) {
  const Tensor x = act.make(DType::kBf16, {call.tokens, call.dims.hidden});
  execute(call.exec, call.layer.ref, ops::HyperConnectionPre{residual, call.layer.w(fn), x});
  execute(call.exec, call.layer.ref, ops::RmsNorm{x, call.layer.w(norm), x, call.dims.eps});
  return x;
}

void experts(const AttentionCall& call, const Tensor& x, const Tensor& y) {
  const LayerState& layer = call.layer;
  execute(
      call.exec, layer.ref,
      ops::Moe{call.dims.experts_per_token, call.dims.shared_experts, x, layer.w(WeightId::kGate),
               layer.w(WeightId::kExpertsW13), layer.w(WeightId::kExpertsW2), y,
               layer.w(WeightId::kSharedW13), layer.w(WeightId::kSharedW2)});
  sum_over_ranks(call.context(), y);
}

}  // namespace

void decoder_layer_forward(const AttentionCall& call, const Tensor& residual) {
  Activations act(call.context().memory, call.layer.activations);
  const Tensor y = act.make(DType::kBf16, {call.tokens, call.dims.hidden});
  attention_forward(call, enter(call, residual, WeightId::kHcAttnFn, WeightId::kAttnNorm, act), y);
  execute(call.exec, call.layer.ref, ops::HyperConnectionPost{y, residual});
  experts(call, enter(call, residual, WeightId::kHcFfnFn, WeightId::kFfnNorm, act), y);
  execute(call.exec, call.layer.ref, ops::HyperConnectionPost{y, residual});
}

}  // namespace warmgate::engine
