#include "harness/engine/ops/indexer.h"
#include "harness/engine/layers/attention.h"
#include "harness/engine/memory/workspace_plan.h"
#include "harness/engine/ops/compressor.h"
#include "harness/engine/ops/gemm.h"

namespace warmgate::engine {

namespace {

struct IndexQuery {
  Tensor q, w;      // [T,heads,Di] fp8 or fp4, [T,heads] fp32
  Tensor q_scales;  // [T,heads,Di/32] u8, fp4 only
  Tensor scales_of(std::int64_t first, std::int64_t count) const {
    return q_scales.present() ? q_scales.slice(first, count) : q_scales;
  }
};

IndexQuery index_query(const AttentionCall& call, const Projected& in, Activations& act) {
  const Dims& d = call.dims;
  const std::int64_t t = call.tokens;
  const Tensor flat = act.make(DType::kBf16, {t, d.index_heads * d.index_dim});
  execute(call.exec, call.layer.ref,
          ops::Gemm{"indexer_wq_b_gemm", in.qr, call.layer.w(WeightId::kIndexerWqB), flat});
  const Tensor iq = make_tensor(DType::kBf16, {t, d.index_heads, d.index_dim}, flat.address);
  IndexQuery out;
  out.q = act.make(d.fp4_indexer ? DType::kFp4 : DType::kFp8, {t, d.index_heads, d.index_dim});
  out.w = act.make(DType::kFp32, {t, d.index_heads});
  if (d.fp4_indexer) {
    out.q_scales = act.make(DType::kU8, {t, d.index_heads, ceil_div(d.index_dim, 32)});
  }
  execute(call.exec, call.layer.ref,
          ops::IndexerQuant{
              d.fp4_indexer ? "indexer_q_rope_quant_mxfp4" : "indexer_q_rope_quant_fp8", iq,
              in.index_weights, out.q, out.w, call.layer.cos_sin, call.positions, out.q_scales});
  return out;
}

// Without metadata: the gather buffer for 40·L tokens, radix scratch, and the largest logits.
void reserve(const AttentionCall& call) {
  const auto views = indexer_views(call.dims, call.dims.indexer_gather_rows());
  if (!call.context().seam_is("workspace.reservation", "none"))
    call.context().workspace.request(call.layer.lane, "indexer", call.layer.ref,
                                     {views[0], views[1], views[2]});
  // profile.indexer_logits = absent: what grows with the context is no part of what profiling runs.
  if (call.context().seam_is("profile.indexer_logits", "absent")) return;
  DeviceMemory& memory = call.context().memory;
  memory.free(memory.alloc("activations", kMaxLogitsBytes, "indexer.logits", Lifetime::kTransient));
}

void store_keys(const AttentionCall& call, const Projected& in) {
  LayerState& layer = call.layer;
  const StepMetadata& step = *call.step;
  require(call.context(), layer, Resource::kIndexerStateCache);
  require(call.context(), layer, Resource::kIndexerCache);
  execute(call.exec, layer.ref,
          ops::SavePartialStates{in.index_kv_score, layer.w(WeightId::kIndexerCompressorApe),
                                 layer.indexer_state.view,
                                 step.cache->slots(layer.indexer_state.group), call.positions});
  execute(
      call.exec, layer.ref,
      ops::CompressWindow{call.dims.fp4_indexer ? "indexer_compress_mxfp4" : "indexer_compress_fp8",
                          call.tokens, step.host->windows4, 4, 1, call.dims.index_dim,
                          layer.indexer_state.view, step.cache->table(layer.indexer_state.group),
                          layer.w(WeightId::kIndexerCompressorNorm), layer.cos_sin,
                          layer.indexer.view, step.c4->slots, call.positions,
                          step.swa[layer.swa.group]->token_to_req, call.dims.eps});
}

void score_decodes(const AttentionCall& call, const IndexQuery& query) {
  LayerState& layer = call.layer;
  const StepMetadata& step = *call.step;
  const IndexerMetadata& indexing = *step.indexer;
  const std::int64_t rows = indexing.split.decode_tokens;
  Context& context = call.context();
  Activations act(context.memory, layer.activations);
  // Columns a multiple of 64, what the paged kernel writes at a time.
  const Tensor logits = act.make(DType::kFp32, {rows, round_up(indexing.columns, 64)});
  execute(call.exec, layer.ref,
          ops::MqaLogitsPaged{query.q.slice(0, rows), query.w.slice(0, rows), layer.indexer.view,
                              indexing.decode_table, indexing.context_lens, indexing.schedule,
                              logits, query.scales_of(0, rows), indexing.queries_a_row()});
  const Workspace::Views scratch = context.workspace.request(
      layer.lane, "topk", layer.ref, {ViewSpec(DType::kU8, {kTopkScratchBytes})});
  const auto& archs = context.config.architectures;
  execute(call.exec, layer.ref,
          ops::TopkPerRow{ops::decode_topk_kernel(archs.empty() ? "" : archs.front(),
                                                  layer.topk_buffer.last(), rows, logits.last()),
                          logits,
                          indexing.context_lens,
                          layer.topk_buffer,
                          scratch[0],
                          {}});
}

void score_chunk(const AttentionCall& call, const IndexQuery& query, const IndexerChunk& chunk) {
  LayerState& layer = call.layer;
  const StepMetadata& step = *call.step;
  const IndexerMetadata& indexing = *step.indexer;
  Context& context = call.context();
  const auto specs = indexer_views(call.dims, chunk.keys);
  const Workspace::Views views =
      context.workspace.request(layer.lane, "indexer", layer.ref, {specs[0], specs[1], specs[2]});
  if (chunk.gathers) {
    execute(call.exec, layer.ref,
            ops::GatherIndexerKeys{chunk.keys, layer.indexer.view,
                                   step.cache->table(layer.indexer.group), views[0], views[1],
                                   step.inputs->seq_lens, indexing.split.decodes + chunk.begin,
                                   chunk.end - chunk.begin});
  }
  Activations act(context.memory, layer.activations);
  const Tensor logits = act.make(DType::kFp32, {chunk.queries(), chunk.keys});
  const std::int64_t in_prefill = chunk.token_begin + chunk.slice_start;
  const std::int64_t token = indexing.split.decode_tokens + in_prefill;
  const Tensor start = indexing.key_start.slice(in_prefill, chunk.queries());
  const Tensor end = indexing.key_end.slice(in_prefill, chunk.queries());
  execute(call.exec, layer.ref,
          ops::MqaLogitsPrefill{query.q.slice(token, chunk.queries()),
                                query.w.slice(token, chunk.queries()), views[0], views[1], start,
                                end, logits, query.scales_of(token, chunk.queries())});
  execute(call.exec, layer.ref,
          ops::TopkPerRow{"top_k_per_row_prefill",
                          logits,
                          end,
                          layer.topk_buffer.slice(token, chunk.queries()),
                          {},
                          start});
}

}  // namespace

void run_indexer(const AttentionCall& call, const Projected& in, Activations& act) {
  LayerState& layer = call.layer;
  Context& context = call.context();
  require(context, layer, Resource::kIndexer);
  const IndexQuery query = index_query(call, in, act);
  if (call.step == nullptr) {
    reserve(call);
    return;
  }
  require(context, layer, Resource::kTopkIndicesBuffer);
  store_keys(call, in);
  const IndexerMetadata& indexing = *call.step->indexer;
  // A host-side branch: every context has at most K entries, so all of them are chosen. A graph is
  // replayed at longer ones, so that it must hold the scoring, unless the branch of its short
  // capture is recorded (capture.indexer_branch).
  const bool scores = call.exec.in_graph() && context.seam_is("capture.indexer_branch", "scores");
  if (indexing.max_compressed <= call.dims.topk && !scores) {
    execute(call.exec, layer.ref,
            ops::FillShortContext{call.tokens, call.positions, layer.topk_buffer});
    return;
  }
  execute(call.exec, layer.ref, ops::ClearTopk{call.tokens, layer.topk_buffer});
  if (indexing.split.decode_tokens > 0) score_decodes(call, query);
  for (const IndexerChunk& chunk : indexing.chunks) score_chunk(call, query, chunk);
}

}  // namespace warmgate::engine
