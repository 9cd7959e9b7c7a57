// One decoder layer's weights, buffers and caches.
#pragma once

#include <array>
#include <optional>

#include "harness/engine/layers/dims.h"
#include "harness/engine/layers/resources.h"
#include "harness/engine/layers/weights.h"
#include "harness/engine/memory/kv_cache.h"

namespace warmgate::engine {

struct LayerState {
  LayerRef ref;  // id, kind, role
  Kind kind = Kind::kSwaOnly;
  Role role = Role::kTarget;
  std::int64_t ratio = 1;
  Owned owned;
  Demands demands;
  std::array<Tensor, kNumWeights> weights;
  Tensor topk_buffer;  // [B, K] i32, absent where the layer owns none
  Tensor eager_q;      // [B, padded heads, D] bf16 of the scratch pool, else absent
  Tensor cos_sin;      // [rope rows, R] fp32
  BoundCache swa, compressed, state, indexer, indexer_state;
  int lane = 0;  // of the workspace
  /// Whether the compressor skipped its windows in the step whose host branches were recorded.
  std::optional<bool> recorded_skip;
  DeviceMemory::Site activations = -1;

  const Tensor& w(WeightId id) const { return weights[static_cast<std::size_t>(id)]; }
};

/// The resources that a layer of this kind owns by its construction (not the optional ones:
/// topk_indices_buffer, aux_streams, eager_scratch).
Owned built_in(Kind kind);

}  // namespace warmgate::engine
