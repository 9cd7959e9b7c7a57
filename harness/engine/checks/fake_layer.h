// For tests: the attention of one layer, computed by the oracles and told to the checks op by op as
// an engine would. What an engine can get wrong can be made wrong one at a time.
#pragma once

#include <memory>

#include "harness/engine/checks/fake_memory.h"
#include "harness/engine/checks/numerics.h"
#include "harness/engine/checks/read.h"
#include "harness/engine/memory/kv_cache.h"
#include "harness/engine/ops/indexer.h"
#include "harness/engine/ops/output_projection.h"
#include "harness/engine/ops/query_key.h"
#include "harness/engine/testing_run.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/cache.h"
#include "kernels/reference/compressor.h"
#include "kernels/reference/indexer.h"
#include "kernels/reference/linear.h"
#include "kernels/reference/visible.h"

namespace warmgate::engine::checks::testing {

/// What goes wrong in the step.
enum class Fault {
  kNone,
  kWindowOneShort,   // the oldest key of the window is left out
  kWindowOneLong,    // one key before the window is seen
  kEntryTooEarly,    // an entry that is not complete is seen
  kEntryMissing,     // an entry that ends in this step is not stored
  kEntryWrongPlace,  // … is stored one row further on
  kKeyWrongSlot,     // the window key is stored one row further on
  kKeyNotRotated,    // … without rotation
  kStateWithoutApe,  // state rows lack the offset of their place in the window
  kHeadNotRotated,   // one query head
  kPaddingHeads,     // are not zero
  kTopkTruncated,    // the last chosen entry is dropped
  kTopkWorst,        // the worst entry instead of the best
  kTopkTail,         // what lies behind the last is not -1
  kNoSink,           // attention without sink
  kNanOutput,        // a row of the attention output was never written
  kProductColumns,   // a product's last column is one too large
  kFreedBlock,       // a block of the window was given back too early
  kOperandScale,     // the output's scale is twice what it was quantised with
};

class FakeLayer {
 public:
  explicit FakeLayer(Kind kind, std::uint32_t seed, const std::string& numerics = "sampled",
                     bool fp4 = false)
      : config(make_config(kind, numerics, fp4)),
        dims(make_dims(config)),
        memory(seed),
        ratio(ratio_of(kind)) {
    const auto modules = cache_modules(dims, {kind});
    const auto groups = group_caches(modules);
    KvPlan plan;
    plan.num_blocks = 2000;
    for (const CacheGroup& g : groups) plan.block_stride = std::max(plan.block_stride, g.bytes);
    log.recorder.phase_begin("serve");
    cache = std::make_unique<KvCache>(device_, dims, modules, groups, plan);
    make_layer(kind, modules);
    numerics_ = std::make_unique<Numerics>(config, dims, layers, log.recorder);
  }

  /// Stores a history of `computed` tokens and runs a step of `query` more.
  void step(std::int64_t computed, std::int64_t query, Fault fault = Fault::kNone) {
    ASSERT_TRUE(cache->tables().grow(0, computed + query));
    make_history(computed);
    StepHost host;
    host.build({{{0, computed, query, {}}}, false}, dims);
    numerics_->begin_step(host, cache->tables());
    run(computed, query, fault);
    numerics_->end_step();
  }

  /// The phase's checks by tensor: the final line of each.
  std::map<std::string, nlohmann::json> results() {
    numerics_->end_phase();
    std::map<std::string, nlohmann::json> out;
    for (const auto& e : log.events("check")) {
      if (e.value("final", false)) out[e["tensor"]] = e;
    }
    return out;
  }
  /// Tensors whose check failed.
  std::set<std::string> failures() {
    std::set<std::string> out;
    for (const auto& [tensor, e] : results()) {
      const bool right = e["error"].is_number() && e["error"] <= e["limit"] &&
                         e["mismatches"] == 0 && e["poisoned"] == 0;
      if (!right) out.insert(tensor);
    }
    return out;
  }

  const scenario::Resolved config;
  Dims dims;
  /// How far the worst score of the last row lay below the last that was chosen, relative.
  double topk_gap = 0;
  EventLog log;
  Memory memory;
  std::int64_t ratio;
  std::vector<LayerState> layers;

 private:
  DeviceMemory device_{std::int64_t{4} << 30, log.recorder,
                       device_named(engine::testing::executing_device())};

 public:
  std::unique_ptr<KvCache> cache;

 private:
  static scenario::Resolved make_config(Kind kind, const std::string& numerics, bool fp4) {
    scenario::Resolved r = engine::testing::small({ratio_of(kind)}, 4096, 512, 4);
    r.device = engine::testing::executing_device();
    r.checks.numerics = numerics;
    auto& m = r.model;
    m.hidden_size = 96;
    m.q_lora_rank = 32;
    m.num_attention_heads = 4;
    m.o_groups = 2;
    m.o_lora_rank = 16;
    m.index_n_heads = 2;
    m.index_topk = 8;
    m.vocab_size = 64;
    m.moe_intermediate_size = 16;
    if (fp4) m.indexer_cache_dtype = "fp4";
    return r;
  }
  void make_layer(Kind kind, const std::vector<CacheModule>& modules);
  void make_history(std::int64_t computed);
  void run(std::int64_t computed, std::int64_t query, Fault fault);
  Tensor multiply(const char* kernel, const Tensor& x, WeightId w, DType dtype,
                  Fault fault = Fault::kNone);
  void store_key(const BoundCache& cache, std::int64_t index, const reference::DsMlaRow& row);
  void store_index_key(std::int64_t entry, View key);
  void store_entries(std::int64_t computed, std::int64_t query, Fault fault);
  Vector entry_of(const BoundCache& state, std::int64_t dim, WeightId norm, std::int64_t entry);
  void choose(std::int64_t computed, std::int64_t query, Fault fault);
  Matrix keys_of(std::int64_t p, std::int64_t t, Fault fault);
  reference::Rope rope() const { return reference::rope_of_layer(ratio, {}); }
  std::byte* page(const Tensor& view, std::int64_t block) {
    return memory.at(view) + block * view.strides[0] * bits_of(view.dtype) / 8;
  }
  reference::Place place(const BoundCache& c, std::int64_t index) {
    return reference::place(cache->tables().row(c.group, 0), c.view.dim(1), index);
  }

  std::unique_ptr<Numerics> numerics_;
  Tensor main_score_, index_score_, index_q_, index_w_;
};

inline void FakeLayer::make_layer(Kind kind, const std::vector<CacheModule>& modules) {
  LayerState layer;
  layer.ref = {0, to_string(kind), "target"};
  layer.kind = kind;
  layer.ratio = ratio;
  for (const WeightSpec& spec : layer_weights(dims, config.model, kind, false)) {
    Tensor& w = layer.weights[static_cast<std::size_t>(spec.id)];
    const Tensor& t = spec.tensor;
    if (t.rank == 2) {
      w = memory.weight(t.dtype, t.rows(), t.last());
    } else if (t.rank == 1) {
      w = memory.make(t.dtype, {t.rows()});
      Vector values = memory.random(t.rows(), 0.1);
      for (double& v : values) v += 1;
      memory.set(make_tensor(t.dtype, {1, t.rows()}, w.address), 0, values);
    }
  }
  layer.topk_buffer = memory.make(DType::kI32, {dims.max_tokens, dims.topk});
  layer.cos_sin = memory.make(DType::kFp32, {4096, dims.rope_dim});
  for (std::int64_t p = 0; p < 4096; ++p)
    memory.set(layer.cos_sin, p, reference::cos_sin(rope(), p));
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const BoundCache bound = cache->of(i);
    switch (modules[i].spec.kind) {
      case CacheKind::kSwa:
        layer.swa = bound;
        break;
      case CacheKind::kC4Key:
      case CacheKind::kC128Key:
        layer.compressed = bound;
        break;
      case CacheKind::kC4IndexerKey:
        layer.indexer = bound;
        break;
      case CacheKind::kC4State:
      case CacheKind::kC128State:
        layer.state = bound;
        break;
      case CacheKind::kC4IndexerState:
        layer.indexer_state = bound;
        break;
    }
  }
  layers.push_back(layer);
}

}  // namespace warmgate::engine::checks::testing

#include "harness/engine/checks/fake_layer_run.h"
