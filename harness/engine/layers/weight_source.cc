#include "harness/engine/layers/weight_source.h"

namespace warmgate::engine {

namespace {

using Fill = WeightSource::Fill;
using Rows = WeightSource::Rows;

/// Equal parts of `whole` rows, of which this rank has the rank-th.
Rows part(std::int64_t whole, std::int64_t count, int rank, std::int64_t before = 0) {
  return {before + rank * count, count, before + whole};
}

class Sources {
 public:
  Sources(const Dims& d, const scenario::Model& m, int rank) : d_(d), m_(m), rank_(rank) {}

  WeightSource of(const WeightSpec& spec) const {
    const Tensor& w = spec.tensor;
    switch (spec.id) {
      using enum WeightId;
      case kQNorm:
      case kKvNorm:
      case kCompressorNorm:
      case kIndexerCompressorNorm:
      case kAttnNorm:
      case kFfnNorm:
      case kFinalNorm:
      case kMainNorm:
      case kDraftNorm:
      case kEnorm:
      case kHnorm:
        return {Fill::kNorm, {{0, 1, 1}, {}}, 0, w.last()};
      case kCompressorApe:
      case kIndexerCompressorApe:
        return {Fill::kBias, {whole(w), {}}, 0, w.last()};
      case kAttnSink:
        return {Fill::kSink, {{0, 1, 1}, {}}, rank_ * d_.rank_heads, d_.heads, d_.rank_heads};
      case kWqB:
        return rows(w, part(d_.heads * d_.head_dim, w.rows(), rank_));
      case kWoA:
        return rows(w, part(d_.o_groups * d_.o_lora, w.rows(), rank_));
      case kWoB:
        return {Fill::kMatrix, {whole(w), {}}, rank_ * w.last(), d_.o_groups * d_.o_lora};
      case kEmbed:
        return {Fill::kTable, {part(d_.vocab, w.rows(), rank_), {}}, 0, w.last()};
      case kLmHead:
        return rows(w, part(d_.vocab, w.rows(), rank_));
      case kSharedW13:
        return gate_up(w, d_.rank_shared_inter, m_.moe_intermediate_size * m_.n_shared_experts);
      case kSharedW2:
        return down(w, w.rows(), m_.moe_intermediate_size * m_.n_shared_experts);
      case kExpertsW13:
        if (d_.shared_experts > 0 || w.rows() < 1) return {};
        return gate_up(w, d_.rank_inter, m_.moe_intermediate_size);
      case kExpertsW2:
        if (d_.shared_experts > 0 || w.rows() < 1) return {};
        return down(w, w.dim(1), m_.moe_intermediate_size);
      case kFusedWqaWkv:
      case kCompressorWkvWgate:
      case kIndexerWqB:
      case kIndexerWeightsProj:
      case kIndexerCompressorWkvWgate:
      case kMainProj:
      case kMarkovW1:
      case kMarkovW2:
      case kEhProj:
        return rows(w, whole(w));
      case kHcAttnFn:
      case kHcFfnFn:
      case kHcScales:
      case kGate:
      case kGateBias:
      case kHashTable:
      case kHcHeadFn:
      case kHcHeadScales:
      case kDraftHcHeadFn:
      case kDraftHcHeadScales:
      case kCount:
        return {};
    }
    return {};
  }

 private:
  static Rows whole(const Tensor& w) { return {0, w.rows(), w.rows()}; }
  static WeightSource rows(const Tensor& w, const Rows& held) {
    return {Fill::kMatrix, {held, {}}, 0, w.last()};
  }
  // [gate | up], each cut by itself.
  WeightSource gate_up(const Tensor& w, std::int64_t count, std::int64_t inter) const {
    return {
        Fill::kMatrix, {part(inter, count, rank_), part(inter, count, rank_, inter)}, 0, w.last()};
  }
  WeightSource down(const Tensor& w, std::int64_t outputs, std::int64_t inter) const {
    return {Fill::kMatrix, {{0, outputs, outputs}, {}}, rank_ * w.last(), inter};
  }

  const Dims& d_;
  const scenario::Model& m_;
  int rank_;
};

}  // namespace

WeightSource source_of(const WeightSpec& spec, const Dims& dims, const scenario::Model& model,
                       int rank) {
  return Sources(dims, model, rank).of(spec);
}

}  // namespace warmgate::engine
