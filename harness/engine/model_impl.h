// The state behind EngineModel. Its methods are spread over model.cc (load, profile), model_step.cc
// and model_draft.cc.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "harness/engine/checks/numerics.h"
#include "harness/engine/layers/decoder_layer.h"
#include "harness/engine/layers/loader.h"
#include "harness/engine/memory/kv_plan.h"
#include "harness/engine/memory/workspace_plan.h"
#include "harness/engine/model.h"
#include "harness/engine/ops/graph_pass.h"
#include "harness/engine/ops/metadata.h"

namespace warmgate::engine {

/// A graph and what its replays showed in this phase.
struct Replayed {
  CapturedGraph graph;
  std::int64_t replays = 0, compared = 0, unequal = 0;  // steps; unequal: in any bit
  double error = 0;                                     // the worst row's, against eager
  std::size_t differences = 0;                          // that events have said
};

struct EngineModel::Impl {
  explicit Impl(Context& context);
  ~Impl();

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
  std::unique_ptr<checks::Numerics> numerics;  // where ops are executed and checks are wanted
  std::vector<std::int32_t> table_rows;        // on their way to the device
  std::vector<std::int64_t> picked;            // token rows of the step whose logits are wanted
  std::vector<std::int64_t> sampled;  // of the last step, one a request, where ops are executed

  const Tensor& w(WeightId id) const { return weights[static_cast<std::size_t>(id)]; }
  std::size_t target_layers() const { return static_cast<std::size_t>(dims.layers); }

  struct Builders {
    std::unique_ptr<MetadataBuilders> target, draft;
  };
  Builders make_builders(DeviceMemory& memory, const KvCache& of) const;
  void watch_numerics();
  void bind_caches();
  KvCache& require_cache(const char* what);
  Tensor null_block() const;  // [block stride] u8
  /// Captured decode steps, by number of rows.
  std::map<std::int64_t, Replayed> graphs;
  Tensor last_residual;              // of target_forward, in the activations it was given
  bool one_layer_of_a_kind = false;  // forward_layers goes through the first of each kind alone
  std::map<std::size_t, std::int64_t> empty_rows;  // by cache group: rows of its table, zero so far

  std::uint64_t* logits_digest = nullptr;
  std::uint64_t spoiled_null_block = 0;  // digest of its contents

  /// Embedding, layers, head; `step` null in profiling. Returns the tapped hidden states
  /// [T, taps·H] that a block drafter reads (absent without one), which live in `act`.
  Tensor target_forward(const StepMetadata* step, std::int64_t tokens, std::int64_t logit_rows,
                        Activations& act, GraphPass* pass = nullptr);
  /// Inputs, slots, tables and metadata of `batch` on the device; `metadata` holds what is the
  /// step's alone.
  const StepMetadata& prepare(const Batch& batch, Activations& metadata);
  /// The graph that a step of this batch replays; null: it runs eagerly.
  Replayed* graph_of(const Batch& batch);
  /// Rows, shapes and branches of a step as the graph has them.
  void shape_for(const Replayed& graph, Batch& batch) const;
  /// Replays; now and then after running eagerly, for the comparison.
  void replay(const StepMetadata& step, Replayed& graph);
  void tell(const Replayed& graph, bool final);
  void tell(Replayed& graph, const GraphDifference& difference);
  /// One `replay` a graph that was replayed, with the counts.
  void end_graphs();
  void forward_layers(std::size_t begin, std::size_t end, const StepMetadata* step,
                      std::int64_t tokens, const Tensor& positions, const Tensor& residual,
                      const Tensor* taps);
  /// hidden copies → norm → logits of `rows` rows, gathered over ranks: [rows, V] fp32. Which rows:
  /// `which`, the first ones if it is empty.
  Tensor logits_of(const LayerRef& ref, const Tensor& residual, WeightId hc_fn, WeightId norm,
                   std::int64_t rows, Activations& act, std::span<const std::int64_t> which = {});
  /// The logit rows of a step, by request: all tokens of one that decodes, the last of one that
  /// prefills.
  void pick_rows(const StepHost& step);
  void keep_sampled(const StepHost& step, const Tensor& ids);

  // Draft. `step` null in profiling.
  void draft_context(const StepMetadata* step, const Tensor& taps, std::int64_t tokens);
  void draft_block(const StepMetadata* step, std::int64_t tokens, std::int64_t requests,
                   bool markov);
  void profile_draft(const Tensor& taps, std::int64_t tokens, std::int64_t requests);
  ops::PrepareDraftInputs draft_inputs(std::int64_t tokens, const Tensor& slots,
                                       const Tensor& samples, const StepHost* step) const;
  void send_draft_slots();
  void step_block_draft(const Tensor& taps);
  void step_mtp_draft();

  /// Profiling's tokens and positions: all 0.
  void zero_inputs();
  void fill_slots_of(const StepHost& step, std::size_t group);
  /// Rows of the group's device table, one a request of the step, zeros where it has no blocks and
  /// in a dummy step. Origin: vLLM at d40c3e3c00, v1/worker/gpu/block_table.py gather_block_tables.
  void send_table(const LayerRef& ref, const StepHost& step, std::size_t group);
  std::int64_t logit_rows(const StepHost& step) const;
};

}  // namespace warmgate::engine
