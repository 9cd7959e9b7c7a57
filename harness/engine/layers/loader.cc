#include "harness/engine/layers/loader.h"

#include <algorithm>

#include "harness/engine/layers/weight_source.h"

namespace warmgate::engine {

std::int64_t load_weights(Context& context, const Dims& dims, std::string_view pool,
                          std::int64_t layer, const std::vector<WeightSpec>& specs,
                          WeightArray& weights) {
  const Device& device = device_named(context.config.device);
  std::int64_t bytes = 0;
  for (const WeightSpec& spec : specs) {
    const WeightSource source =
        source_of(spec, dims, context.config.model, context.collectives.rank());
    // What is filled at once needs no poison first.
    const Fresh fresh = source.fill == WeightSource::Fill::kNone ? Fresh::kStandIn
                        : spec.tensor.rank == 3                  ? Fresh::kPoison
                                                                 : Fresh::kZero;
    Tensor t = spec.tensor;
    t.address =
        context.memory.alloc(pool, spec.bytes, spec.name, Lifetime::kPersistent, fresh).address;
    weights[static_cast<std::size_t>(spec.id)] = t;
    bytes += spec.bytes;
    if (device.executes())
      ops::seed_weight(t, source, ops::weight_key(context.config.seed, layer, spec.name), device);
  }
  return bytes;
}

void fill_rope_tables(Context& context, const Dims& dims, const Tensor& window,
                      const Tensor& compressed) {
  const Device& device = device_named(context.config.device);
  if (!device.executes()) return;
  const scenario::Model& m = context.config.model;
  ops::Rope rope{m.rope_theta,  context.seam_is("rope.window_layers", "yarn"),
                 m.rope_factor, m.beta_fast,
                 m.beta_slow,   m.original_max_position_embeddings};
  const std::int64_t rows = std::min(dims.rope_rows, dims.max_model_len);
  ops::fill_rope(window, rope, rows, device);
  rope.theta = m.compress_rope_theta;
  rope.yarn = true;
  ops::fill_rope(compressed, rope, rows, device);
}

std::vector<LayerState> make_layers(const scenario::Resolved& config, const Dims& dims,
                                    DeviceMemory& memory) {
  std::vector<LayerState> out;
  const DeviceMemory::Site target_site =
      memory.site("activations", "target_layer", Lifetime::kTransient);
  const DeviceMemory::Site draft_site =
      memory.site("activations", "draft_layer", Lifetime::kTransient);
  for (std::int64_t id = 0; id < dims.layers + dims.draft_layers; ++id) {
    LayerState layer;
    layer.role = id < dims.layers ? Role::kTarget : Role::kDraft;
    layer.ratio = scenario::effective_ratio(config.model, id);
    layer.kind = kind_of_ratio(layer.ratio);
    layer.ref = {static_cast<int>(id), to_string(layer.kind), to_string(layer.role)};
    layer.owned = built_in(layer.kind);
    layer.activations = layer.role == Role::kTarget ? target_site : draft_site;
    out.push_back(std::move(layer));
  }
  return out;
}

TargetBuffers make_target_buffers(DeviceMemory& memory, const Dims& d, bool drafter) {
  Buffers buffers(memory, "buffers");
  TargetBuffers out;
  out.inputs = InputBuffers::make(buffers, d, "runner.input_buffers");
  out.topk_indices = buffers.make("topk_indices_buffer", DType::kI32, {d.max_tokens, d.topk});
  out.eager_q =
      buffers.make("eager_scratch.q", DType::kBf16, {d.max_tokens, d.padded_heads, d.head_dim});
  // The pool's second part is the largest of three sets that are never alive together: fp32
  // compressor products, indexer queries, quantised attention output with its scales.
  const std::int64_t compressor = 4 * (4 * d.head_dim + 4 * d.index_dim);
  const std::int64_t indexer = d.index_heads * (3 * d.index_dim + 8);
  const std::int64_t output = d.rank_heads * (d.head_dim + d.head_dim / 32);
  buffers.make("eager_scratch.sets", DType::kU8,
               {d.max_tokens, std::max({compressor, indexer, output})});
  out.cos_sin_window = buffers.make("rope.cos_sin_cache", DType::kFp32, {d.rope_rows, d.rope_dim});
  out.cos_sin_compressed =
      buffers.make("rope.cos_sin_cache", DType::kFp32, {d.rope_rows, d.rope_dim});
  if (drafter) {
    out.aux_hidden =
        buffers.make("mtp_hidden_buffer", DType::kBf16, {d.max_tokens, d.hc * d.hidden});
  }
  return out;
}

DraftBuffers make_draft_buffers(DeviceMemory& memory, const Dims& d, std::int64_t groups,
                                bool own_topk_buffer) {
  Buffers buffers(memory, "draft_buffers");
  DraftBuffers out;
  out.inputs = InputBuffers::make(buffers, d, "speculator.input_buffers");
  // The parent class makes [B, hc·H] first; the drafter replaces it.
  memory.free(memory.alloc("draft_buffers", d.max_tokens * d.hc * d.hidden * 2,
                           "speculator.hidden_states_of_parent", Lifetime::kTransient));
  out.main_x = buffers.make("speculator.hidden_states", DType::kBf16, {d.max_tokens, d.hidden});
  out.context_positions = buffers.make("speculator.context_positions", DType::kI64, {d.max_tokens});
  out.context_slots = buffers.make("speculator.context_slots", DType::kI64,
                                   {std::max<std::int64_t>(groups, 1), d.max_tokens});
  const std::int64_t samples = d.max_seqs * std::max<std::int64_t>(d.speculative, 1);
  out.sample_indices = buffers.make("speculator.sample_indices", DType::kI64, {samples});
  buffers.make("speculator.sample_pos_idx_col", DType::kI32, {3, samples});
  out.draft_tokens = buffers.make("speculator.draft_tokens", DType::kI64,
                                  {d.max_seqs, std::max<std::int64_t>(d.speculative, 1)});
  buffers.make("speculator.request_state", DType::kI64, {4, d.max_seqs});
  if (own_topk_buffer) {
    out.topk_indices =
        buffers.make("draft.topk_indices_buffer", DType::kI32, {d.max_tokens, d.topk});
  }
  return out;
}

}  // namespace warmgate::engine
