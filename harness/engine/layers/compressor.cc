#include "harness/engine/ops/compressor.h"
#include "harness/engine/layers/attention.h"

namespace warmgate::engine {

void run_compressor(const AttentionCall& call, const Projected& in) {
  LayerState& layer = call.layer;
  if (call.step == nullptr) return;  // no cache is touched without metadata
  const StepMetadata& step = *call.step;
  Context& context = call.context();
  require(context, layer, Resource::kCompressor);
  require(context, layer, Resource::kStateCache);
  execute(call.exec, layer.ref,
          ops::SavePartialStates{in.kv_score, layer.w(WeightId::kCompressorApe), layer.state.view,
                                 step.cache->slots(layer.state.group), call.positions});
  const bool c4 = layer.kind == Kind::kC4a;
  const std::int64_t entries = c4 ? step.host->windows4 : step.host->windows128;
  // A host-side branch: no token of this step ends a window of 128, so there is no entry to make.
  // Recorded into a graph it stays as it was then, whatever a later step needs.
  const bool frozen = context.seam_is("capture.c128_branch", "recorded");
  bool skips = !c4 && entries == 0 && (!call.exec.in_graph() || frozen);
  if (step.host->recorded) {
    layer.recorded_skip = skips;
  } else if (layer.recorded_skip) {
    skips = *layer.recorded_skip;
  }
  if (skips) return;
  require(context, layer, Resource::kCompressedCache);
  execute(
      call.exec, layer.ref,
      ops::CompressWindow{c4 ? "compress_c4_insert" : "compress_c128_insert", call.tokens, entries,
                          layer.ratio, c4 ? 1 : 0, call.dims.head_dim, layer.state.view,
                          step.cache->table(layer.state.group), layer.w(WeightId::kCompressorNorm),
                          layer.cos_sin, layer.compressed.view, step.sparse(layer.kind)->slots,
                          call.positions, step.swa[layer.swa.group]->token_to_req, call.dims.eps});
}

}  // namespace warmgate::engine
