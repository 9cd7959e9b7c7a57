// The part of the model that needs a KV cache: its making, its blocks, and steps.
#include <algorithm>
#include <stdexcept>

#include "harness/engine/model_impl.h"
#include "harness/engine/ops/metadata_lists.h"

namespace warmgate::engine {

KvCache& EngineModel::Impl::require_cache(const char* what) {
  if (!cache) throw std::logic_error(std::string(what) + " before init_kv");
  return *cache;
}

EngineModel::Impl::Builders EngineModel::Impl::make_builders(DeviceMemory& memory,
                                                             const KvCache& of) const {
  std::vector<std::size_t> windows, draft_windows;
  std::optional<std::size_t> full;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].cls == CacheClass::kFullMla) full = g;
    if (groups[g].cls != CacheClass::kSwa) continue;
    bool has_target = false, has_draft = false;
    for (const auto& member : groups[g].members) {
      (modules[member.module].layer < dims.layers ? has_target : has_draft) = true;
    }
    if (has_target) windows.push_back(g);
    if (has_draft) draft_windows.push_back(g);
  }
  const auto& archs = context.config.architectures;
  const std::string_view arch = archs.empty() ? std::string_view() : archs.front();
  Builders out;
  out.target =
      std::make_unique<MetadataBuilders>(memory, dims, of, Role::kTarget, windows, full, arch);
  if (draft_loaded) {
    out.draft = std::make_unique<MetadataBuilders>(memory, dims, of, Role::kDraft, draft_windows,
                                                   std::nullopt, arch);
  }
  return out;
}

std::int64_t EngineModel::bytes_beside_slab() const {
  const Impl& m = *impl_;
  // The same code, on a device that only counts and tells nobody.
  trace::EventWriter nowhere;
  Recorder silent(nowhere);
  DeviceMemory counted(std::int64_t{1} << 62, silent);
  KvPlan plan;
  plan.num_blocks = 1;
  plan.block_stride = DeviceMemory::kRounding;
  const KvCache cache(counted, m.dims, m.modules, m.groups, plan);
  const Impl::Builders builders = m.make_builders(counted, cache);
  std::int64_t bytes = counted.persistent_bytes() - plan.block_stride;
  if (builders.draft) bytes += builders.draft->lazy_bytes();
  return bytes;
}

void EngineModel::init_kv(const KvPlan& plan) {
  Impl& m = *impl_;
  m.cache = std::make_unique<KvCache>(m.context.memory, m.dims, m.modules, m.groups, plan);
  m.bind_caches();
  Impl::Builders made = m.make_builders(m.context.memory, *m.cache);
  m.target_builders = std::move(made.target);
  m.draft_builders = std::move(made.draft);
}

void EngineModel::Impl::bind_caches() {
  for (std::size_t i = 0; i < modules.size(); ++i) {
    LayerState& layer = layers[static_cast<std::size_t>(modules[i].layer)];
    const BoundCache& bound = cache->of(i);
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
}

bool EngineModel::grow_request(std::int64_t request, std::int64_t tokens) {
  return impl_->require_cache("grow_request").tables().grow(request, tokens);
}
void EngineModel::free_window_blocks(std::int64_t request, std::int64_t computed) {
  impl_->require_cache("free_window_blocks").tables().free_window(request, computed);
}
void EngineModel::release_request(std::int64_t request) {
  impl_->require_cache("release_request").tables().release(request);
}
std::int64_t EngineModel::free_blocks() const {
  return impl_->require_cache("free_blocks").tables().free_blocks();
}

namespace {

// Builders clamp negative entries in place; only those that this step's tokens can reach matter.
void clamp_reach(BlockTables& tables, std::size_t group, const BatchRequest& request) {
  const std::span<std::int32_t> row = tables.mutable_row(group, request.request);
  const std::int64_t first = std::max<std::int64_t>(0, request.computed - tables.window(group)) /
                             tables.block_tokens(group);
  if (first < static_cast<std::int64_t>(row.size())) {
    clamp_negative(row.subspan(static_cast<std::size_t>(first)));
  }
}

}  // namespace

void EngineModel::Impl::fill_slots_of(const StepHost& step, std::size_t group) {
  BlockTables& tables = cache->tables();
  const std::int64_t block_tokens = tables.block_tokens(group);
  cache->write_slots(group, step.tokens, [&](std::span<std::int64_t> slots) {
    if (step.dummy) {
      // warmup.dummy_slots = null_block: a zero is a slot too, the first of the block that padding
      // reads.
      const bool skipped = context.seam_is("warmup.dummy_slots", "skipped");
      std::fill(slots.begin(), slots.end(), skipped ? -1 : 0);
      return;
    }
    for (std::size_t r = 0; r < step.batch.size(); ++r) {
      const BatchRequest& request = step.batch[r];
      if (request.request == kPadding) break;
      clamp_reach(tables, group, request);
      fill_slots(tables.row(group, request.request), block_tokens, request.computed,
                 slots.subspan(static_cast<std::size_t>(step.query_start[r]),
                               static_cast<std::size_t>(request.query)));
    }
    std::fill(slots.begin() + step.real_tokens, slots.end(), -1);
  });
}

void EngineModel::Impl::zero_inputs() {
  const InputBuffers& in = buffers.inputs;
  exec.copy({-1, "", "target"}, "zero_inputs",
            ops::PrepareInputs{{"prepare_inputs", dims.max_tokens, in.query_start, in.seq_lens,
                                in.ids, in.positions},
                               {},
                               {},
                               {},
                               {}});
}

void EngineModel::Impl::send_table(const LayerRef& ref, const StepHost& step, std::size_t group) {
  const BlockTables& tables = cache->tables();
  const Tensor rows = cache->table(group).slice(0, step.requests);
  table_rows.clear();
  // The rows of a dummy step are empty; where they are so already, they are not sent again.
  std::int64_t& empty = empty_rows[group];
  const bool there = step.dummy && step.requests <= empty;
  empty = step.dummy ? std::max(empty, step.requests) : 0;
  if (exec.executes() && !there) {
    const auto columns = static_cast<std::size_t>(tables.columns(group));
    table_rows.resize(static_cast<std::size_t>(step.requests) * columns, 0);
    for (std::size_t r = 0; !step.dummy && r < static_cast<std::size_t>(step.real_requests); ++r) {
      const auto blocks = tables.row(group, step.batch[r].request);
      const std::size_t count = std::min(columns, blocks.size());
      std::copy_n(blocks.begin(), count,
                  table_rows.begin() + static_cast<std::ptrdiff_t>(r * columns));
    }
  }
  exec.copy(ref, "block_table", ops::upload(rows, std::span<const std::int32_t>(table_rows)),
            there);
}

std::int64_t EngineModel::Impl::logit_rows(const StepHost& step) const {
  std::int64_t rows = 0;
  for (const BatchRequest& r : step.batch) {
    if (r.request == kPadding) break;
    // A request that decodes is verified at each of its tokens, one that prefills at its last.
    rows += r.computed > 0 && r.query <= 1 + dims.speculative ? r.query : 1;
  }
  return rows;
}

const StepMetadata& EngineModel::Impl::prepare(const Batch& batch, Activations& metadata) {
  Impl& m = *this;
  m.host.build(batch, m.dims);
  if (!batch.dummy) {
    for (const BatchRequest& r : batch.requests) {
      m.cache->tables().check_held(r.request, r.computed, r.computed + r.query);
    }
  }
  static constexpr LayerRef kModel{-1, "", "target"};
  const InputBuffers& inputs = m.buffers.inputs;
  // warmup.dummy_inputs = as_found: a dummy step has nothing to say about ids and positions, and
  // what an earlier step left in their buffers is used.
  const bool found = batch.dummy && m.context.seam_is("warmup.dummy_inputs", "as_found");
  ops::PrepareInputs prepare{{"prepare_inputs", m.host.tokens, inputs.query_start, inputs.seq_lens,
                              inputs.ids, inputs.positions},
                             m.host.query_start,
                             m.host.seq_lens,
                             m.host.ids,
                             m.host.device_positions,
                             !found};
  execute(m.exec, kModel, prepare);
  for (std::size_t g = 0; g < m.cache->groups(); ++g) {
    m.fill_slots_of(m.host, g);
    m.send_table(kModel, m.host, g);
    execute(m.exec, kModel,
            ops::SlotMapping{{"compute_slot_mapping",
                              m.host.tokens,
                              inputs.positions,
                              m.cache->table(g),
                              m.cache->slots(g),
                              {}},
                             m.cache->host_slots(g)});
  }
  return m.target_builders->build(m.exec, m.host, *m.cache, inputs, metadata, false);
}

void EngineModel::step(const Batch& batch, bool with_draft) {
  Impl& m = *impl_;
  m.require_cache("step");
  if (batch.requests.empty()) return;
  Activations metadata(m.context.memory, m.step_metadata);
  if (Replayed* graph = with_draft ? nullptr : m.graph_of(batch)) {
    Batch padded = batch;
    m.shape_for(*graph, padded);
    m.replay(m.prepare(padded, metadata), *graph);
    return;
  }
  const StepMetadata& step = m.prepare(batch, metadata);
  Activations act(m.context.memory, m.model_activations);
  const checks::Watch watch(m.numerics.get(), m.host, m.cache->tables());
  const Tensor taps = m.target_forward(&step, m.host.tokens, m.logit_rows(m.host), act);
  if (!with_draft || !m.draft_loaded) return;
  if (m.context.config.drafter.parallel_drafting()) {
    m.step_block_draft(taps);
  } else {
    m.step_mtp_draft();
  }
}

}  // namespace warmgate::engine
