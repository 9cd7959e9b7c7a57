// The state behind EngineModel. Its methods are spread over model.cc (load, profile), model_step.cc
// and model_draft.cc.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "harness/engine/layers/decoder_layer.h"
#include "harness/engine/layers/loader.h"
#include "harness/engine/memory/kv_plan.h"
#include "harness/engine/memory/workspace_plan.h"
#include "harness/engine/model.h"

namespace warmgate::engine {

struct EngineModel::Impl {
  explicit Impl(Context& context);

  Context& context;
  Dims dims;
  Executor exec;
  std::vector<LayerState> layers;  // target, then draft
  WeightArray weights{};           // around the layers, target's and drafter's
  TargetBuffers buffers;
  DraftBuffers draft;
  bool target_loaded = false, draft_loaded = false;
  DeviceMemory::Site model_activations = -1, draft_activations = -1, step_metadata = -1;

  std::vector<CacheModule> modules;
  std::vector<CacheGroup> groups;
  std::unique_ptr<KvCache> cache;
  std::unique_ptr<MetadataBuilders> target_builders, draft_builders;
  StepHost host, draft_host;

  const Tensor& w(WeightId id) const { return weights[static_cast<std::size_t>(id)]; }
  std::size_t target_layers() const { return static_cast<std::size_t>(dims.layers); }

  void bind_caches();
  KvCache& require_cache(const char* what);

  /// Embedding, layers, head; `step` null in profiling. Returns the tapped hidden states
  /// [T, taps·H] that a block drafter reads (absent without one), which live in `act`.
  Tensor target_forward(const StepMetadata* step, std::int64_t tokens, std::int64_t logit_rows,
                        Activations& act);
  void forward_layers(std::size_t begin, std::size_t end, const StepMetadata* step,
                      std::int64_t tokens, const Tensor& positions, const Tensor& residual,
                      const Tensor* taps);
  /// hidden copies → norm → logits of `rows` rows, gathered over ranks: [rows, V] fp32.
  Tensor logits_of(const LayerRef& ref, const Tensor& residual, WeightId hc_fn, WeightId norm,
                   std::int64_t rows, Activations& act);

  // Draft. `step` null in profiling.
  void draft_context(const StepMetadata* step, const Tensor& taps, std::int64_t tokens);
  void draft_block(const StepMetadata* step, std::int64_t tokens, std::int64_t requests,
                   bool markov);
  void profile_draft(const Tensor& taps, std::int64_t tokens, std::int64_t requests);
  void step_block_draft(const Tensor& taps);
  void step_mtp_draft();

  void fill_slots_of(const StepHost& step, std::size_t group);
  std::int64_t logit_rows(const StepHost& step) const;
};

}  // namespace warmgate::engine
