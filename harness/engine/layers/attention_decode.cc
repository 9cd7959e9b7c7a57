#include "harness/engine/layers/attention.h"
#include "harness/engine/ops/sparse_attention.h"

namespace warmgate::engine {

namespace {

struct Extra {
  Tensor cache, indices, lens;
};

Tensor with_query_dim(const Tensor& t, std::int64_t tokens) {
  return make_tensor(t.dtype, {tokens, 1, t.last()}, t.address);
}

Extra extra_indices(const AttentionCall& call, std::int64_t tokens, Activations& act) {
  LayerState& layer = call.layer;
  const StepMetadata& step = *call.step;
  if (layer.kind == Kind::kSwaOnly) return {};
  require(call.context(), layer, Resource::kCompressedCache);
  if (layer.kind == Kind::kC128a) {
    return {layer.compressed.view, with_query_dim(step.c128->decode_indices, tokens),
            step.c128->decode_lens};
  }
  require(call.context(), layer, Resource::kTopkIndicesBuffer);
  const SwaMetadata& swa = *step.swa[layer.swa.group];
  const Tensor global = act.make(DType::kI32, {tokens, 1, layer.topk_buffer.last()});
  const Tensor lens = act.make(DType::kI32, {tokens});
  execute(call.exec, layer.ref,
          ops::GlobalTopkIndices{layer.topk_buffer, swa.token_to_req,
                                 step.cache->table(layer.compressed.group), swa.is_valid, global,
                                 lens, layer.compressed.view.dim(1)});
  return {layer.compressed.view, global, lens};
}

}  // namespace

void decode_attention(const AttentionCall& call, const Tensor& q, const Tensor& out,
                      Activations& act) {
  LayerState& layer = call.layer;
  const StepMetadata& step = *call.step;
  const std::int64_t tokens = q.rows();
  const SwaMetadata& swa = *step.swa[layer.swa.group];
  const Extra extra = extra_indices(call, tokens, act);
  bool& planned = step.tiles_planned[static_cast<std::size_t>(layer.kind)];
  if (!planned) {
    planned = true;  // the first call of a kind plans for all layers of that kind
    execute(call.exec, layer.ref, ops::TilePlan{tokens, swa.decode_lens, extra.lens});
  }
  const Tensor query = make_tensor(DType::kBf16, {tokens, 1, q.dim(1), q.dim(2)}, q.address);
  execute(call.exec, layer.ref,
          ops::SparseDecode{query, layer.swa.view, swa.decode_indices(), swa.decode_lens,
                            extra.cache, extra.indices, extra.lens, layer.w(WeightId::kAttnSink),
                            out, call.context().seam_is("attention.window_padding", "counted")});
}

}  // namespace warmgate::engine
