#include "harness/engine/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>

#include "harness/engine/layers/collective_ops.h"
#include "harness/engine/model_impl.h"
#include "harness/engine/ops/decoder.h"
#include "harness/engine/ops/inspect.h"

namespace warmgate::engine {

std::int64_t Batch::tokens() const {
  std::int64_t sum = 0;
  for (const BatchRequest& r : requests) sum += r.query;
  return sum;
}

EngineModel::Impl::Impl(Context& context_in)
    : context(context_in), dims(make_dims(context_in.config)), exec(context_in) {
  DeviceMemory& memory = context.memory;
  layers = make_layers(context.config, dims, memory);
  model_activations = memory.site("activations", "target_model", Lifetime::kTransient);
  draft_activations = memory.site("activations", "draft_model", Lifetime::kTransient);
  step_metadata = memory.site("activations", "step_metadata", Lifetime::kTransient);
  std::vector<Kind> kinds;
  for (const LayerState& layer : layers) kinds.push_back(layer.kind);
  modules = cache_modules(dims, kinds);
  groups = group_caches(modules);
  watch_numerics();
}

EngineModel::EngineModel(Context& context) : impl_(std::make_unique<Impl>(context)) {}
EngineModel::~EngineModel() = default;

void EngineModel::load_target() {
  Impl& m = *impl_;
  DeviceMemory& memory = m.context.memory;
  const auto& config = m.context.config;
  m.buffers = make_target_buffers(memory, m.dims, config.drafter.active());
  fill_rope_tables(m.context, m.dims, m.buffers.cos_sin_window, m.buffers.cos_sin_compressed);
  std::int64_t bytes =
      load_weights(m.context, m.dims, "weights", -1, model_weights(m.dims), m.weights);
  for (std::size_t i = 0; i < m.target_layers(); ++i) {
    LayerState& layer = m.layers[i];
    const bool hash_routed = static_cast<std::int64_t>(i) < config.model.num_hash_layers;
    bytes +=
        load_weights(m.context, m.dims, "weights", layer.ref.id,
                     layer_weights(m.dims, config.model, layer.kind, hash_routed), layer.weights);
    layer.topk_buffer = m.buffers.topk_indices;
    layer.eager_q = m.buffers.eager_q;
    layer.cos_sin =
        layer.kind == Kind::kSwaOnly ? m.buffers.cos_sin_window : m.buffers.cos_sin_compressed;
    layer.owned.add(Resource::kTopkIndicesBuffer);
    layer.owned.add(Resource::kAuxStreams);
    layer.owned.add(Resource::kEagerScratch);
  }
  m.target_loaded = true;
  m.context.recorder.counter("weights_bytes", static_cast<double>(bytes));
}

void EngineModel::load_draft() {
  Impl& m = *impl_;
  const auto& drafter = m.context.config.drafter;
  if (!drafter.active()) return;
  if (!m.target_loaded) throw std::logic_error("load_draft before load_target");
  DeviceMemory& memory = m.context.memory;
  std::int64_t window_groups = 0;
  for (const CacheGroup& group : m.groups) window_groups += group.cls == CacheClass::kSwa;
  const bool own_topk = drafter.topk_indices_buffer == "own";
  m.draft = make_draft_buffers(memory, m.dims, window_groups, own_topk);
  std::int64_t bytes = load_weights(m.context, m.dims, "draft_weights", -1,
                                    drafter_weights(m.dims, m.context.config), m.weights);
  for (std::size_t i = m.target_layers(); i < m.layers.size(); ++i) {
    LayerState& layer = m.layers[i];
    bytes += load_weights(m.context, m.dims, "draft_weights", layer.ref.id,
                          layer_weights(m.dims, m.context.config.model, layer.kind, false),
                          layer.weights);
    layer.cos_sin = m.buffers.cos_sin_window;
    layer.lane = m.context.workspace.lanes() > 1 ? 1 : 0;
    layer.topk_buffer = m.draft.topk_indices;
    if (own_topk) layer.owned.add(Resource::kTopkIndicesBuffer);
  }
  m.draft_loaded = true;
  m.context.recorder.counter("draft_weights_bytes", static_cast<double>(bytes));
}

void EngineModel::announce_layers() {
  for (const LayerState& layer : impl_->layers) {
    trace::Line line("layer");
    line.num("layer", layer.ref.id).str("kind", layer.ref.kind).num("ratio", layer.ratio);
    line.str("role", layer.ref.role).strings("owns", layer.owned.names());
    impl_->context.recorder.send(line);
  }
}

void EngineModel::profile_forward(std::int64_t tokens, std::int64_t requests) {
  Impl& m = *impl_;
  if (!m.target_loaded) throw std::logic_error("profile_forward before load_target");
  if (tokens < 1 || tokens > m.dims.max_tokens || requests < 1 || requests > m.dims.max_seqs) {
    throw std::out_of_range(fmt::format("profiling {} tokens over {} requests; at most {} and {}",
                                        tokens, requests, m.dims.max_tokens, m.dims.max_seqs));
  }
  // Told first: what is reserved follows from the configuration, also where the forward fails.
  for (const WorkspaceRow& row :
       workspace_plan(m.dims, m.context.config.seams.at("workspace.reservation"))) {
    trace::Line line("workspace_plan");
    line.str("layer_kind", row.layer_kind).str("consumer", row.consumer);
    line.num("reserved", row.reserved).num("needed", row.needed);
    m.context.recorder.once(line);
  }
  m.zero_inputs();
  // Steps bring metadata of their own, which the modelled engine leaves out like all that is made
  // after profiling: lengths to gather, key ranges of each token, a request for each gathered key.
  Activations metadata(m.context.memory, m.step_metadata);
  if (m.context.seam_is("kv.sizing", "counts_what_follows")) {
    metadata.make(DType::kI32, {m.dims.max_seqs});
    if (m.dims.has(Kind::kC4a)) {
      metadata.make(DType::kI32, {2, m.dims.max_tokens});
      metadata.make(DType::kI32, {m.dims.indexer_gather_rows()});
    }
  }
  Activations act(m.context.memory, m.model_activations);
  const Tensor taps = m.target_forward(nullptr, tokens, requests, act);
  if (m.draft_loaded) m.profile_draft(taps, tokens, requests);
}

KvPlan EngineModel::plan_kv(std::int64_t pool_bytes) const {
  return plan_kv_cache(impl_->dims, impl_->modules, impl_->groups, pool_bytes);
}

std::int64_t EngineModel::decode_threshold() const { return impl_->dims.decode_threshold(); }

const Cost& EngineModel::cost() const { return impl_->exec.cost(); }

std::int64_t EngineModel::sample(std::int64_t request, std::int64_t position) const {
  // splitmix64 over (seed, request, position).
  auto x = static_cast<std::uint64_t>(impl_->context.config.seed);
  for (const std::int64_t part : {request, position}) {
    x += 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(part);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
  }
  const auto vocab = static_cast<std::uint64_t>(std::max<std::int64_t>(impl_->dims.vocab, 1));
  return static_cast<std::int64_t>(x % vocab);
}

void EngineModel::Impl::forward_layers(std::size_t begin, std::size_t end, const StepMetadata* step,
                                       std::int64_t tokens, const Tensor& positions,
                                       const Tensor& residual, const Tensor* taps) {
  const auto& ids = context.config.drafter.target_layer_ids;
  std::set<Kind> seen;
  for (std::size_t i = begin; i < end; ++i) {
    LayerState& layer = layers[i];
    const bool tapped = taps != nullptr && std::count(ids.begin(), ids.end(), layer.ref.id) > 0;
    if (one_layer_of_a_kind && !seen.insert(layer.kind).second && !tapped) continue;
    decoder_layer_forward({exec, dims, layer, step, positions, tokens}, residual);
    if (taps == nullptr) continue;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (ids[k] != layer.ref.id) continue;
      // One of the taps' columns, each [T,H].
      Tensor out = make_tensor(DType::kBf16, {tokens, dims.hidden},
                               taps->address + k * static_cast<std::uint64_t>(dims.hidden) * 2);
      out.strides[0] = taps->strides[0];
      execute(exec, layer.ref, ops::MeanOfCopies{residual, out});
    }
  }
}

Tensor EngineModel::Impl::logits_of(const LayerRef& ref, const Tensor& residual, WeightId hc_fn,
                                    WeightId norm, std::int64_t rows, Activations& act,
                                    std::span<const std::int64_t> which) {
  const Tensor hidden = act.make(DType::kBf16, {residual.rows(), dims.hidden});
  execute(exec, ref, ops::HyperConnectionPre{residual, w(hc_fn), hidden});
  const Tensor picked_rows = act.make(DType::kBf16, {rows, dims.hidden});
  execute(exec, ref, ops::SelectRows{hidden, picked_rows, which});
  execute(exec, ref,
          ops::RmsNorm{picked_rows, w(norm), picked_rows, context.config.model.rms_norm_eps});
  const Tensor shard = act.make(DType::kFp32, {rows, dims.rank_vocab});
  execute(exec, ref, ops::Gemm{"lm_head_gemm", picked_rows, w(WeightId::kLmHead), shard});
  if (dims.tp == 1) return shard;
  const Tensor all = act.make(DType::kFp32, {rows, dims.vocab});
  gather_from_ranks(context, shard, all);
  return all;
}

Tensor EngineModel::Impl::target_forward(const StepMetadata* step, std::int64_t tokens,
                                         std::int64_t logit_rows_in, Activations& act,
                                         GraphPass* pass) {
  static constexpr LayerRef kModel{-1, "", "target"};
  const Tensor hidden = act.make(DType::kBf16, {tokens, dims.hidden});
  exec.use(pass);
  if (pass != nullptr) pass->begin();
  execute(exec, kModel,
          ops::Embed{buffers.inputs.ids, w(WeightId::kEmbed), hidden,
                     context.collectives.rank() * dims.rank_vocab});
  sum_over_ranks(context, hidden);
  const Tensor residual = act.make(DType::kBf16, {tokens, dims.hc, dims.hidden});
  execute(exec, kModel, ops::SpreadCopies{hidden, residual});
  const bool tapped = context.config.drafter.parallel_drafting() && draft_loaded;
  Tensor taps;
  if (tapped) taps = act.make(DType::kBf16, {tokens, dims.target_taps * dims.hidden});
  forward_layers(0, target_layers(), step, tokens, buffers.inputs.positions, residual,
                 tapped ? &taps : nullptr);
  if (pass != nullptr) pass->end();
  exec.use(nullptr);
  last_residual = residual;
  picked.clear();
  if (step != nullptr) pick_rows(*step->host);
  Activations head(context.memory, model_activations);
  const Tensor logits = logits_of(kModel, residual, WeightId::kHcHeadFn, WeightId::kFinalNorm,
                                  logit_rows_in, head, picked);
  const Tensor ids = head.make(DType::kI64, {logits.rows()});
  execute(exec, kModel, ops::Sample{"greedy_sample", logits, ids});
  if (logits_digest != nullptr) exec.copy(kModel, "logits", ops::Digest{logits, logits_digest});
  if (step != nullptr) keep_sampled(*step->host, ids);
  return taps;
}

void EngineModel::Impl::pick_rows(const StepHost& step) {
  for (std::size_t r = 0; r < step.batch.size(); ++r) {
    const BatchRequest& request = step.batch[r];
    if (request.request == kPadding) break;
    const bool decodes = request.computed > 0 && request.query <= 1 + dims.speculative;
    const std::int64_t end = step.query_start[r + 1];
    for (std::int64_t t = end - (decodes ? request.query : 1); t < end; ++t) picked.push_back(t);
  }
}

void EngineModel::Impl::keep_sampled(const StepHost& step, const Tensor& ids) {
  sampled.clear();
  if (!exec.executes()) return;
  exec.drain();
  std::vector<std::int64_t> rows(picked.size());
  device_named(context.config.device).read(ids.address, std::as_writable_bytes(std::span(rows)));
  for (std::size_t r = 0; r < static_cast<std::size_t>(step.real_requests); ++r) {
    // The last row of each request is that of its last token.
    const auto at = std::lower_bound(picked.begin(), picked.end(), step.query_start[r + 1] - 1);
    sampled.push_back(rows[static_cast<std::size_t>(at - picked.begin())]);
  }
}

bool EngineModel::executes() const { return device_named(impl_->context.config.device).executes(); }

std::span<const std::int64_t> EngineModel::sampled() const { return impl_->sampled; }

}  // namespace warmgate::engine
