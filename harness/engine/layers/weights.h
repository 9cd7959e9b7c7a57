// Weight tensors of one rank: names, shapes, dtypes, bytes.
// Origin of shapes and sharding: vLLM at d40c3e3c00,
// vllm/models/deepseek_v4/{attention,compressor}.py and nvidia/dspark.py; experts and
// hyper-connections from the published configs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/engine/layers/dims.h"
#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

enum class WeightId : std::uint8_t {
  // attention
  kFusedWqaWkv,
  kQNorm,
  kKvNorm,
  kWqB,
  kWoA,
  kWoB,
  kAttnSink,
  kCompressorWkvWgate,
  kCompressorApe,
  kCompressorNorm,
  kIndexerWqB,
  kIndexerWeightsProj,
  kIndexerCompressorWkvWgate,
  kIndexerCompressorApe,
  kIndexerCompressorNorm,
  // the rest of the layer
  kAttnNorm,
  kFfnNorm,
  kHcAttnFn,
  kHcFfnFn,
  kHcScales,
  kGate,
  kGateBias,
  kHashTable,
  kExpertsW13,
  kExpertsW2,
  kSharedW13,
  kSharedW2,
  // around the layers
  kEmbed,
  kLmHead,
  kFinalNorm,
  kHcHeadFn,
  kHcHeadScales,
  kMainProj,
  kMainNorm,
  kMarkovW1,
  kMarkovW2,
  kDraftNorm,
  kDraftHcHeadFn,
  kDraftHcHeadScales,
  kEhProj,
  kEnorm,
  kHnorm,
  kCount
};
inline constexpr std::size_t kNumWeights = static_cast<std::size_t>(WeightId::kCount);

struct WeightSpec {
  WeightId id;
  std::string_view name;
  Tensor tensor;           // of one rank, without address
  std::int64_t bytes = 0;  // with block scales
};

/// One decoder layer. Draft layers are swaonly. `hash_routed`: the layer has a table instead of a
/// router bias.
std::vector<WeightSpec> layer_weights(const Dims& dims, const scenario::Model& model, Kind kind,
                                      bool hash_routed);
/// Embedding, head, final norm, head mixing.
std::vector<WeightSpec> model_weights(const Dims& dims);
/// What a drafter adds beside its decoder layers; embedding and head are the target's.
std::vector<WeightSpec> drafter_weights(const Dims& dims, const scenario::Resolved& config);

}  // namespace warmgate::engine
