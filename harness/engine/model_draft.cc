// The drafter's share of profiling and of steps.
// Origin: vLLM at d40c3e3c00, models/deepseek_v4/nvidia/dspark.py and
// v1/worker/gpu/spec_decode/{dflash,dspark}/speculator.py.
#include <algorithm>

#include "harness/engine/layers/collective_ops.h"
#include "harness/engine/model_impl.h"
#include "harness/engine/ops/decoder.h"
#include "harness/engine/ops/metadata.h"
#include "harness/engine/ops/query_key.h"
#include "harness/engine/ops/sparse_attention.h"

namespace warmgate::engine {

namespace {
constexpr LayerRef kDraft{-1, "", "draft"};
}

// Keys and values of the target's tokens for each draft layer: main_x = norm(main_proj(taps)), then
// that layer's kv projection; inserted only where a cache exists.
void EngineModel::Impl::draft_context(const StepMetadata* step, const Tensor& taps,
                                      std::int64_t tokens) {
  Activations act(context.memory, draft_activations);
  if (step != nullptr) {
    exec.copy(kDraft, "context_positions",
              ops::upload(draft.context_positions.slice(0, tokens),
                          std::span<const std::int64_t>(step->host->device_positions)));
  }
  const Tensor main_x = draft.main_x.slice(0, tokens);
  execute(exec, kDraft, ops::Gemm{"main_proj_gemm", taps, w(WeightId::kMainProj), main_x});
  execute(exec, kDraft, ops::RmsNorm{main_x, w(WeightId::kMainNorm), main_x, dims.eps});
  for (std::size_t i = target_layers(); i < layers.size(); ++i) {
    LayerState& layer = layers[i];
    const Tensor& fused = layer.w(WeightId::kFusedWqaWkv);
    const Tensor wkv = fused.slice(dims.q_lora, dims.head_dim);
    const Tensor kv = act.make(DType::kBf16, {tokens, dims.head_dim});
    execute(exec, layer.ref, ops::Gemm{"draft_context_kv_gemm", main_x, wkv, kv, fused});
    execute(exec, layer.ref, ops::RmsNorm{kv, layer.w(WeightId::kKvNorm), kv, dims.eps});
    if (step == nullptr) continue;
    require(context, layer, Resource::kSwaCache);
    // The fused op is reused with a query of zeros whose output nobody reads.
    const Tensor q = act.make(DType::kBf16, {tokens, dims.rank_heads, dims.head_dim});
    const Tensor q_out = act.make(DType::kBf16, {tokens, dims.padded_heads, dims.head_dim});
    execute(exec, layer.ref, ops::ZeroFill{q});
    execute(
        exec, layer.ref,
        ops::QNormRopeInsert{q, kv, layer.cos_sin, layer.swa.view, cache->slots(layer.swa.group),
                             draft.context_positions, q_out, dims.eps});
  }
}

// The query block: embedding, layers, head; then one token after the other with the low-rank bias.
void EngineModel::Impl::draft_block(const StepMetadata* step, std::int64_t tokens,
                                    std::int64_t requests, bool markov) {
  Activations act(context.memory, draft_activations);
  const Tensor hidden = act.make(DType::kBf16, {tokens, dims.hidden});
  execute(exec, kDraft,
          ops::Embed{draft.inputs.ids, w(WeightId::kEmbed), hidden,
                     context.collectives.rank() * dims.rank_vocab});
  sum_over_ranks(context, hidden);
  const Tensor residual = act.make(DType::kBf16, {tokens, dims.hc, dims.hidden});
  execute(exec, kDraft, ops::SpreadCopies{hidden, residual});
  forward_layers(target_layers(), layers.size(), step, tokens, draft.inputs.positions, residual,
                 nullptr);
  const std::int64_t rows = markov ? tokens : requests;
  std::vector<std::int64_t> last;  // token of each request, where one is proposed for each
  if (step != nullptr && !markov) {
    for (std::size_t r = 1; r < step->host->query_start.size(); ++r) {
      last.push_back(step->host->query_start[r] - 1);
    }
  }
  const Tensor base =
      logits_of(kDraft, residual, WeightId::kDraftHcHeadFn, WeightId::kDraftNorm, rows, act, last);
  const Tensor ids = act.make(DType::kI64, {requests});
  if (!markov) {
    execute(exec, kDraft, ops::Sample{"draft_sample", base, ids});
    return;
  }
  // What precedes a block's first token is not known before the target's token was verified, which
  // is not done here: it counts as token 0.
  execute(exec, kDraft, ops::ZeroFill{ids});
  const Tensor logits = act.make(DType::kFp32, {requests, dims.vocab});
  for (std::int64_t i = 0; i < dims.speculative; ++i) {
    execute(exec, kDraft,
            ops::MarkovBias{ids, w(WeightId::kMarkovW1), w(WeightId::kMarkovW2), logits, base,
                            ceil_div(tokens, requests), i});
    execute(exec, kDraft, ops::Sample{"draft_sample", logits, ids});
  }
}

// `step` null in profiling: everything is 0.
ops::PrepareDraftInputs EngineModel::Impl::draft_inputs(std::int64_t tokens, const Tensor& slots,
                                                        const Tensor& samples,
                                                        const StepHost* step) const {
  const InputBuffers& in = draft.inputs;
  ops::PrepareDraftInputs out{tokens,      in.ids, in.positions, slots, samples, in.query_start,
                              in.seq_lens, {},     {},           {},    {}};
  if (step == nullptr) return out;
  out.host_query_start = step->query_start;
  out.host_seq_lens = step->seq_lens;
  out.host_ids = step->ids;
  out.host_positions = step->device_positions;
  return out;
}

void EngineModel::Impl::send_draft_slots() {
  for (const SwaMetadata& window : draft_builders->windows()) {
    const std::size_t group = window.group();
    fill_slots_of(draft_host, group);
    send_table(kDraft, draft_host, group);
    exec.copy(kDraft, "slot_mapping", ops::upload(cache->slots(group), cache->host_slots(group)));
  }
}

void EngineModel::Impl::profile_draft(const Tensor& taps, std::int64_t tokens,
                                      std::int64_t requests) {
  if (!dims.parallel_drafting) {
    execute(exec, kDraft, draft_inputs(tokens, {}, {}, nullptr));
    draft_block(nullptr, tokens, requests, false);
    return;
  }
  draft_context(nullptr, taps, tokens);
  std::int64_t rows = requests * dims.speculative;
  // profile.draft_batch: the input buffers hold B rows; unclamped asks for all the same.
  if (context.seam_is("profile.draft_batch", "clamped")) rows = std::min(rows, dims.max_tokens);
  execute(exec, kDraft, draft_inputs(rows, {}, draft.sample_indices, nullptr));
  draft_block(nullptr, rows, std::min(requests, rows), true);
}

void EngineModel::Impl::step_block_draft(const Tensor& taps) {
  draft_context(&target_builders->current(), taps, host.tokens);
  const std::int64_t n = dims.speculative;
  if (n < 1) return;
  const bool clamped = context.seam_is("profile.draft_batch", "clamped");
  // As many whole blocks at a time as the input buffers hold.
  const std::int64_t at_once =
      clamped ? std::max<std::int64_t>(1, dims.max_tokens / n) : host.requests;
  Batch block;
  block.dummy = host.dummy;
  for (std::int64_t first = 0; first < host.requests; first += at_once) {
    const std::int64_t end = std::min(host.requests, first + at_once);
    block.requests.clear();
    for (std::int64_t r = first; r < end; ++r) {
      const BatchRequest& from = host.batch[static_cast<std::size_t>(r)];
      // Positions behind the last token of the target's step, within max_model_len.
      const std::int64_t start =
          std::min(from.computed + from.query, std::max<std::int64_t>(0, dims.max_model_len - n));
      block.requests.push_back({from.request, start, std::min(n, dims.max_model_len - start)});
    }
    draft_host.build(block, dims);
    execute(
        exec, kDraft,
        draft_inputs((end - first) * n, draft.context_slots, draft.sample_indices, &draft_host));
    send_draft_slots();
    Activations metadata(context.memory, step_metadata);
    const StepMetadata& step =
        draft_builders->build(exec, draft_host, *cache, draft.inputs, metadata, true);
    draft_block(&step, draft_host.tokens, draft_host.requests, true);
  }
}

// One causal pass a speculative token: the first over the target's tokens, the others over one
// token a request.
void EngineModel::Impl::step_mtp_draft() {
  Batch pass;
  pass.dummy = host.dummy;
  pass.requests = host.batch;
  for (std::int64_t i = 0; i < std::max<std::int64_t>(dims.speculative, 1); ++i) {
    if (i > 0) {
      for (BatchRequest& r : pass.requests) {
        r.computed = std::min(r.computed + r.query, dims.max_model_len - 1);
        r.query = 1;
      }
    }
    draft_host.build(pass, dims);
    execute(exec, kDraft, draft_inputs(draft_host.tokens, {}, {}, &draft_host));
    send_draft_slots();
    Activations metadata(context.memory, step_metadata);
    const StepMetadata& step =
        draft_builders->build(exec, draft_host, *cache, draft.inputs, metadata, false);
    draft_block(&step, draft_host.tokens, draft_host.requests, false);
  }
}

}  // namespace warmgate::engine
