#include "harness/engine/layers/attention.h"

#include "harness/engine/ops/gemm.h"
#include "harness/engine/ops/query_key.h"

namespace warmgate::engine {

namespace {

void multiply(const AttentionCall& call, std::string_view kernel, const Tensor& x, WeightId w,
              const Tensor& y) {
  execute(call.exec, call.layer.ref, ops::Gemm{kernel, x, call.layer.w(w), y});
}

Tensor padded_query(const AttentionCall& call, Activations& act) {
  const Dims& d = call.dims;
  if (call.layer.eager_q.present()) return call.layer.eager_q.slice(0, call.tokens);
  return act.make(DType::kBf16, {call.tokens, d.padded_heads, d.head_dim});
}

// Query projection, then norm, rotation, insert and padding in one op; padding alone without
// metadata.
Tensor make_query(const AttentionCall& call, const Projected& in, Activations& act) {
  const Dims& d = call.dims;
  LayerState& layer = call.layer;
  const Tensor flat = act.make(DType::kBf16, {call.tokens, d.rank_heads * d.head_dim});
  multiply(call, "wq_b_gemm", in.qr, WeightId::kWqB, flat);
  const Tensor q = make_tensor(DType::kBf16, {call.tokens, d.rank_heads, d.head_dim}, flat.address);
  const Tensor padded = padded_query(call, act);
  if (call.step == nullptr) {
    execute(call.exec, layer.ref, ops::PadQ{q, padded});
    return padded;
  }
  require(call.context(), layer, Resource::kSwaCache);
  execute(call.exec, layer.ref,
          ops::QNormRopeInsert{q, in.kv, layer.cos_sin, layer.swa.view,
                               call.step->cache->slots(layer.swa.group), call.positions, padded,
                               d.eps});
  return padded;
}

}  // namespace

Projected project_inputs(const AttentionCall& call, const Tensor& x, Activations& act) {
  const Dims& d = call.dims;
  const std::int64_t t = call.tokens;
  Projected out;
  const Tensor qkv = act.make(DType::kBf16, {t, d.q_lora + d.head_dim});
  multiply(call, "fused_wqa_wkv_gemm", x, WeightId::kFusedWqaWkv, qkv);
  if (call.layer.kind != Kind::kSwaOnly) {
    const Tensor& w = call.layer.w(WeightId::kCompressorWkvWgate);
    out.kv_score = act.make(DType::kFp32, {t, w.rows()});
    multiply(call, "compressor_gemm_fp32", x, WeightId::kCompressorWkvWgate, out.kv_score);
  }
  if (call.layer.kind == Kind::kC4a) {
    out.index_weights = act.make(DType::kBf16, {t, d.index_heads});
    multiply(call, "indexer_weights_proj", x, WeightId::kIndexerWeightsProj, out.index_weights);
    out.index_kv_score = act.make(DType::kFp32, {t, 4 * d.index_dim});
    multiply(call, "indexer_compressor_gemm_fp32", x, WeightId::kIndexerCompressorWkvWgate,
             out.index_kv_score);
  }
  out.qr = act.make(DType::kBf16, {t, d.q_lora});
  out.kv = act.make(DType::kBf16, {t, d.head_dim});
  execute(call.exec, call.layer.ref,
          ops::FusedQkvNorm{qkv, call.layer.w(WeightId::kQNorm), call.layer.w(WeightId::kKvNorm),
                            out.qr, out.kv, d.eps});
  return out;
}

void attention_forward(const AttentionCall& call, const Tensor& x, const Tensor& y) {
  const Dims& d = call.dims;
  Activations act(call.context().memory, call.layer.activations);
  const Projected in = project_inputs(call, x, act);
  const Tensor q = make_query(call, in, act);
  if (call.layer.kind != Kind::kSwaOnly) run_compressor(call, in);
  if (call.layer.kind == Kind::kC4a) run_indexer(call, in, act);
  const Tensor out = act.make(DType::kBf16, {call.tokens, d.padded_heads, d.head_dim});
  if (call.step == nullptr) {
    profile_attention(call, out);
  } else {
    // Decode tokens come first in a step, prefill tokens after them.
    const Split& split = call.step->split;
    require(call.context(), call.layer, Resource::kAttnSink);
    auto eager = call.exec.eager_region();
    if (split.decode_tokens > 0) {
      decode_attention(call, q.slice(0, split.decode_tokens), out.slice(0, split.decode_tokens),
                       act);
    }
    if (split.prefill_tokens > 0) {
      prefill_attention(call, q.slice(split.decode_tokens, split.prefill_tokens),
                        out.slice(split.decode_tokens, split.prefill_tokens));
    }
    eager.close();
  }
  project_output(call, out, y, act);
}

}  // namespace warmgate::engine
