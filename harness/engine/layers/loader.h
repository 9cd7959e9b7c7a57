// Loading: weights of one rank, and the buffers that a model makes beside them.
#pragma once

#include <array>
#include <vector>

#include "harness/engine/layers/layer_state.h"
#include "harness/engine/layers/metadata.h"

namespace warmgate::engine {

using WeightArray = std::array<Tensor, kNumWeights>;

/// Allocates each weight in pool `pool` under its name, sets its address and, where ops execute,
/// fills it with what `layer` of the configured seed has there (-1: around the layers). Returns
/// their bytes before allocation rounding.
std::int64_t load_weights(Context& context, const Dims& dims, std::string_view pool,
                          std::int64_t layer, const std::vector<WeightSpec>& specs,
                          WeightArray& weights);

/// Fills the rotary tables, as far as positions can get; nothing where nothing is executed.
void fill_rope_tables(Context& context, const Dims& dims, const Tensor& window,
                      const Tensor& compressed);

/// Layers without weights: kinds, ratios, roles, names. Target first, then draft.
std::vector<LayerState> make_layers(const scenario::Resolved& config, const Dims& dims,
                                    DeviceMemory& memory);

/// What the target's layers share.
struct TargetBuffers {
  Tensor topk_indices;                        // [B,K] i32
  Tensor eager_q;                             // [B,padded heads,D] bf16
  Tensor cos_sin_window, cos_sin_compressed;  // [rope rows,R] fp32; theta 10000 and 160000
  Tensor aux_hidden;  // [B,hc·H] bf16, with a drafter that reads the target
  InputBuffers inputs;
};
TargetBuffers make_target_buffers(DeviceMemory& memory, const Dims& dims, bool drafter);

/// What the drafter owns.
struct DraftBuffers {
  InputBuffers inputs;       // B tokens, S requests
  Tensor main_x;             // [B,H] bf16
  Tensor context_positions;  // [B] i64
  Tensor context_slots;      // [groups,B] i64
  Tensor sample_indices;     // [S·N] i64
  Tensor draft_tokens;       // [S,N] i64
  Tensor topk_indices;       // [B,K] i32 since vllm-project/vllm#46789, absent before
};
DraftBuffers make_draft_buffers(DeviceMemory& memory, const Dims& dims, std::int64_t groups,
                                bool own_topk_buffer);

}  // namespace warmgate::engine
