#include "harness/engine/layers/attention.h"
#include "harness/engine/memory/workspace_plan.h"
#include "harness/engine/ops/sparse_attention.h"

namespace warmgate::engine {

namespace {

// What the combine kernel reads besides window positions: `indices` has the columns that its key
// sees, `topk` of them count. Row 0 is that of the first prefill token.
struct PrefillIndices {
  Tensor indices;
  std::int64_t topk = 0;
  Tensor of(const PrefillChunk& chunk) const {
    return indices.rows() == 0 ? indices : indices.slice(chunk.token_begin, chunk.tokens);
  }
};

// Rows of the step's prefill tokens, which come behind its decode tokens.
Tensor prefill_rows_of(const AttentionCall& call, const Tensor& buffer) {
  const Split& split = call.step->split;
  return buffer.slice(split.decode_tokens, split.prefill_tokens);
}

PrefillIndices window_only_indices(const AttentionCall& call) {
  LayerState& layer = call.layer;
  // The kernel takes an index tensor even where it reads none of it.
  if (call.context().seam_is("prefill.topk_bound", "buffer_required")) {
    require(call.context(), layer, Resource::kTopkIndicesBuffer);
    return {prefill_rows_of(call, layer.topk_buffer), 0};
  }
  if (layer.topk_buffer.present()) return {prefill_rows_of(call, layer.topk_buffer), 0};
  return {make_tensor(DType::kI32, {0, call.dims.topk}), 0};
}

PrefillIndices prefill_indices(const AttentionCall& call) {
  switch (call.layer.kind) {
    case Kind::kSwaOnly:
      return window_only_indices(call);
    case Kind::kC4a:
      require(call.context(), call.layer, Resource::kTopkIndicesBuffer);
      return {prefill_rows_of(call, call.layer.topk_buffer), call.layer.topk_buffer.last()};
    case Kind::kC128a:
      return {call.step->c128->prefill_indices, call.step->c128->width};
  }
  return {};
}

Tensor gather_lens_of(const AttentionCall& call, const PrefillChunk& chunk) {
  const SwaMetadata& swa = *call.step->swa[call.layer.swa.group];
  return swa.gather_lens.slice(chunk.begin, chunk.end - chunk.begin);
}

void gather_keys(const AttentionCall& call, const PrefillChunk& chunk, const Tensor& kv) {
  LayerState& layer = call.layer;
  const StepMetadata& step = *call.step;
  const Tensor lens = step.inputs->seq_lens;
  const std::int64_t request = step.split.decodes + chunk.begin;
  if (layer.kind != Kind::kSwaOnly && chunk.gathered_compressed > 0) {
    require(call.context(), layer, Resource::kCompressedCache);
    execute(call.exec, layer.ref,
            ops::DequantGather{chunk.gathered_compressed,
                               chunk.compressed,
                               0,
                               layer.compressed.view,
                               step.cache->table(layer.compressed.group),
                               lens,
                               kv,
                               {},
                               request,
                               layer.ratio});
  }
  execute(call.exec, layer.ref,
          ops::DequantGather{chunk.gathered_window, chunk.rows - chunk.compressed, chunk.compressed,
                             layer.swa.view, step.cache->table(layer.swa.group), lens, kv,
                             gather_lens_of(call, chunk), request});
}

CombineInputs combine_inputs(const AttentionCall& call, const PrefillIndices& source,
                             const PrefillChunk& chunk) {
  CombineInputs in;
  in.compress_ratio = call.layer.ratio;
  in.topk = source.topk;
  in.index_width = source.indices.last();
  in.window = call.dims.window;
  // int32 arrays from 16-byte aligned bases: a slice is aligned where it starts at a multiple of 4.
  const std::int64_t row = call.step->split.decodes + chunk.begin;
  in.topk_aligned = true;
  in.query_start_loc_aligned = in.seq_lens_aligned = row % 4 == 0;
  in.gather_lens_aligned = chunk.begin % 4 == 0;
  return in;
}

// `views`: kv, indices, lens.
ops::CombineArguments combine_arguments(const AttentionCall& call, const PrefillIndices& source,
                                        const PrefillChunk& chunk, const Workspace::Views& views) {
  const InputBuffers& inputs = *call.step->inputs;
  const std::int64_t request = call.step->split.decodes + chunk.begin;
  const std::int64_t requests = chunk.end - chunk.begin;
  ops::CombineArguments out;
  out.indices = views[1];
  out.lens = views[2];
  out.topk = source.of(chunk);
  out.query_start = inputs.query_start.slice(request, requests + 1);
  out.seq_lens = inputs.seq_lens.slice(request, requests);
  out.gather_lens = gather_lens_of(call, chunk);
  out.rows = chunk.rows;
  out.compressed_rows = chunk.compressed;
  out.requests = requests;
  out.tokens = chunk.tokens;
  return out;
}

}  // namespace

void prefill_attention(const AttentionCall& call, const Tensor& q, const Tensor& out) {
  LayerState& layer = call.layer;
  const PrefillIndices source = prefill_indices(call);
  for (const PrefillChunk& chunk : call.step->chunks[static_cast<std::size_t>(layer.kind)]) {
    const std::int64_t requests = chunk.end - chunk.begin;
    const auto specs = attention_views(call.dims, requests, chunk.rows, source.topk);
    const Workspace::Views views = call.context().workspace.request(
        layer.lane, "attention", layer.ref, {specs[0], specs[1], specs[2]});
    gather_keys(call, chunk, views[0]);
    const ops::CombineArguments arguments = combine_arguments(call, source, chunk, views);
    call.context().kernels.launch_combine(combine_inputs(call, source, chunk), layer.ref,
                                          chunk.tokens, &arguments);
    const std::int64_t width = views[1].last();
    const Tensor kv =
        make_tensor(DType::kBf16, {requests * chunk.rows, 1, call.dims.head_dim}, views[0].address);
    const Tensor indices = make_tensor(DType::kI32, {chunk.tokens, 1, width}, views[1].address);
    execute(
        call.exec, layer.ref,
        ops::SparsePrefill{q.slice(chunk.token_begin, chunk.tokens), kv, indices, views[2],
                           layer.w(WeightId::kAttnSink), out.slice(chunk.token_begin, chunk.tokens),
                           call.context().seam_is("attention.topk_length", "honoured")});
  }
}

}  // namespace warmgate::engine
