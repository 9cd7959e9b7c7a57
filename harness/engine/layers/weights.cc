#include "harness/engine/layers/weights.h"

#include <stdexcept>
#include <string>

#include "harness/engine/ops/gemm.h"

namespace warmgate::engine {

namespace {

class List {
 public:
  void add(WeightId id, std::string_view name, DType dtype, Shape shape) {
    const Tensor t = make_tensor(dtype, shape);
    out.push_back({id, name, t, ops::weight_bytes(t)});
  }
  std::vector<WeightSpec> out;
};

DType dtype_named(const std::string& name) {
  if (name == "fp8") return DType::kFp8;
  if (name == "fp4") return DType::kFp4;
  if (name == "bf16") return DType::kBf16;
  throw std::runtime_error("weight dtype '" + name + "': fp8, fp4 or bf16");
}

void add_attention(List& list, const Dims& d, DType dense) {
  using enum WeightId;
  list.add(kFusedWqaWkv, "fused_wqa_wkv", dense, {d.q_lora + d.head_dim, d.hidden});
  list.add(kQNorm, "q_norm", DType::kBf16, {d.q_lora});
  list.add(kKvNorm, "kv_norm", DType::kBf16, {d.head_dim});
  list.add(kWqB, "wq_b", dense, {d.rank_heads * d.head_dim, d.q_lora});
  list.add(kWoA, "wo_a", dense, {d.rank_groups * d.o_lora, d.heads * d.head_dim / d.o_groups});
  list.add(kWoB, "wo_b", dense, {d.hidden, d.rank_groups * d.o_lora});
  list.add(kAttnSink, "attn_sink", DType::kFp32, {d.padded_heads});
}

void add_compressor(List& list, const Dims& d, std::int64_t ratio) {
  using enum WeightId;
  const std::int64_t coff = ratio == 4 ? 2 : 1;  // two columns sets where windows overlap
  list.add(kCompressorWkvWgate, "compressor.fused_wkv_wgate", DType::kBf16,
           {2 * coff * d.head_dim, d.hidden});
  list.add(kCompressorApe, "compressor.ape", DType::kFp32, {ratio, coff * d.head_dim});
  list.add(kCompressorNorm, "compressor.norm", DType::kBf16, {d.head_dim});
}

void add_indexer(List& list, const Dims& d, DType dense) {
  using enum WeightId;
  list.add(kIndexerWqB, "indexer.wq_b", dense, {d.index_heads * d.index_dim, d.q_lora});
  list.add(kIndexerWeightsProj, "indexer.weights_proj", DType::kBf16, {d.index_heads, d.hidden});
  list.add(kIndexerCompressorWkvWgate, "indexer.compressor.fused_wkv_wgate", DType::kBf16,
           {4 * d.index_dim, d.hidden});
  list.add(kIndexerCompressorApe, "indexer.compressor.ape", DType::kFp32, {4, 2 * d.index_dim});
  list.add(kIndexerCompressorNorm, "indexer.compressor.norm", DType::kBf16, {d.index_dim});
}

void add_ffn(List& list, const Dims& d, const scenario::Model& m, DType dense, bool hash_routed) {
  using enum WeightId;
  const DType expert = dtype_named(m.expert_dtype);
  list.add(kAttnNorm, "attn_norm", DType::kBf16, {d.hidden});
  list.add(kFfnNorm, "ffn_norm", DType::kBf16, {d.hidden});
  list.add(kHcAttnFn, "hc_attn_fn", DType::kFp32, {(2 + d.hc) * d.hc, d.hc * d.hidden});
  list.add(kHcFfnFn, "hc_ffn_fn", DType::kFp32, {(2 + d.hc) * d.hc, d.hc * d.hidden});
  list.add(kHcScales, "hc_base_scale", DType::kFp32, {2, (2 + d.hc) * d.hc + 3});
  list.add(kGate, "gate", DType::kBf16, {d.experts, d.hidden});
  if (hash_routed) {
    list.add(kHashTable, "gate.tid2eid", DType::kI32, {d.vocab, d.experts_per_token});
  } else {
    list.add(kGateBias, "gate.bias", DType::kFp32, {d.experts});
  }
  list.add(kExpertsW13, "experts.w13", expert, {d.experts, 2 * d.rank_inter, d.hidden});
  list.add(kExpertsW2, "experts.w2", expert, {d.experts, d.hidden, d.rank_inter});
  if (d.shared_experts > 0) {
    list.add(kSharedW13, "shared_experts.w13", dense, {2 * d.rank_shared_inter, d.hidden});
    list.add(kSharedW2, "shared_experts.w2", dense, {d.hidden, d.rank_shared_inter});
  }
}

}  // namespace

std::vector<WeightSpec> layer_weights(const Dims& dims, const scenario::Model& model, Kind kind,
                                      bool hash_routed) {
  const DType dense = dtype_named(model.dense_dtype);
  List list;
  list.out.reserve(kNumWeights);
  add_attention(list, dims, dense);
  if (kind != Kind::kSwaOnly) add_compressor(list, dims, ratio_of(kind));
  if (kind == Kind::kC4a) add_indexer(list, dims, dense);
  add_ffn(list, dims, model, dense, hash_routed);
  return list.out;
}

std::vector<WeightSpec> model_weights(const Dims& d) {
  using enum WeightId;
  List list;
  list.add(kEmbed, "embed_tokens", DType::kBf16, {d.rank_vocab, d.hidden});
  list.add(kLmHead, "lm_head", DType::kBf16, {d.rank_vocab, d.hidden});
  list.add(kFinalNorm, "norm", DType::kBf16, {d.hidden});
  list.add(kHcHeadFn, "hc_head_fn", DType::kFp32, {d.hc, d.hc * d.hidden});
  list.add(kHcHeadScales, "hc_head_base_scale", DType::kFp32, {d.hc + 1});
  return list.out;
}

std::vector<WeightSpec> drafter_weights(const Dims& d, const scenario::Resolved& config) {
  using enum WeightId;
  List list;
  if (!config.drafter.active()) return list.out;
  const DType dense = dtype_named(config.model.dense_dtype);
  if (config.drafter.parallel_drafting()) {
    list.add(kMainProj, "main_proj", dense, {d.hidden, d.target_taps * d.hidden});
    list.add(kMainNorm, "main_norm", DType::kBf16, {d.hidden});
    list.add(kMarkovW1, "markov_w1", DType::kBf16, {d.vocab, d.markov_rank});
    list.add(kMarkovW2, "markov_w2", DType::kBf16, {d.vocab, d.markov_rank});
  } else {
    list.add(kEhProj, "eh_proj", dense, {d.hidden, 2 * d.hidden});
    list.add(kEnorm, "enorm", DType::kBf16, {d.hidden});
    list.add(kHnorm, "hnorm", DType::kBf16, {d.hidden});
  }
  list.add(kDraftNorm, "draft.norm", DType::kBf16, {d.hidden});
  list.add(kDraftHcHeadFn, "draft.hc_head_fn", DType::kFp32, {d.hc, d.hc * d.hidden});
  list.add(kDraftHcHeadScales, "draft.hc_head_base_scale", DType::kFp32, {d.hc + 1});
  return list.out;
}

}  // namespace warmgate::engine
