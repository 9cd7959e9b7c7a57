// The model's own state, as start-up compares it, and the spoiling of what no step may rely on.
#include "harness/engine/model_impl.h"
#include "harness/engine/ops/inspect.h"

namespace warmgate::engine {

namespace {

constexpr LayerRef kEngine{-1, "", "target"};

ops::PageContent content_of(CacheKind kind) {
  switch (kind) {
    case CacheKind::kSwa:
    case CacheKind::kC4Key:
    case CacheKind::kC128Key:
      return ops::PageContent::kKeys;
    case CacheKind::kC4IndexerKey:
      return ops::PageContent::kIndexerKeys;
    case CacheKind::kC4State:
    case CacheKind::kC4IndexerState:
    case CacheKind::kC128State:
      break;
  }
  return ops::PageContent::kFp32;
}

// The page of block 0.
Tensor null_page(const BoundCache& cache) {
  return make_tensor(cache.view.dtype, {cache.view.dim(1), cache.view.dim(2)}, cache.view.address);
}

}  // namespace

Tensor EngineModel::Impl::null_block() const {
  // The lowest address of any module's view is the slab's.
  std::uint64_t slab = ~std::uint64_t{0};
  for (std::size_t i = 0; i < modules.size(); ++i) slab = std::min(slab, cache->of(i).view.address);
  const Tensor& any = cache->of(0).view;
  return make_tensor(DType::kU8, {any.strides[0] * bits_of(any.dtype) / 8}, slab);
}

EngineState EngineModel::state() const {
  Impl& m = *impl_;
  const BlockTables& tables = m.require_cache("state").tables();
  EngineState out;
  out.free_blocks = tables.free_blocks();
  for (std::int64_t r = 0; r < m.dims.max_seqs; ++r) {
    const std::int64_t held = tables.held(r);
    out.held_blocks += held;
    out.requests += held > 0;
  }
  if (!m.exec.executes() || m.modules.empty()) return out;
  std::uint64_t digest = 0;
  std::int64_t nan = 0;
  m.exec.copy(kEngine, "null_block", ops::Digest{m.null_block(), &digest});
  for (std::size_t i = 0; i < m.modules.size(); ++i) {
    if (m.modules[i].spec.kind == CacheKind::kC4IndexerKey && m.dims.fp4_indexer) continue;
    m.exec.copy(kEngine, "null_block",
                ops::CountNan{null_page(m.cache->of(i)), content_of(m.modules[i].spec.kind), &nan});
  }
  out.null_block = digest;
  out.nan = nan;
  return out;
}

std::vector<Tensor> EngineModel::block_tables() const {
  const KvCache& cache = impl_->require_cache("block_tables");
  std::vector<Tensor> out;
  for (std::size_t g = 0; g < cache.groups(); ++g) out.push_back(cache.table(g));
  return out;
}

void EngineModel::spoil(std::uint8_t value) {
  Impl& m = *impl_;
  m.require_cache("spoil");
  const auto fill = [&](const Tensor& t, std::uint8_t with) {
    if (t.present()) m.exec.copy(kEngine, "spoil", ops::FillBytes{t, with});
  };
  for (const InputBuffers* inputs : {&m.buffers.inputs, &m.draft.inputs}) {
    fill(inputs->ids, value);
    fill(inputs->positions, value);
    fill(inputs->query_start, value);
    fill(inputs->seq_lens, value);
  }
  for (std::size_t g = 0; g < m.cache->groups(); ++g) {
    fill(m.cache->table(g), value);
    m.empty_rows[g] = 0;
    fill(m.cache->slots(g), value);
  }
  fill(m.buffers.topk_indices, value);
  fill(m.draft.topk_indices, value);
  fill(m.null_block(), value);
  m.exec.copy(kEngine, "null_block", ops::Digest{m.null_block(), &m.spoiled_null_block});
}

void EngineModel::restore_null_block() {
  Impl& m = *impl_;
  std::uint64_t now = 0;
  m.exec.copy(kEngine, "null_block", ops::Digest{m.null_block(), &now});
  if (now == m.spoiled_null_block)
    m.exec.copy(kEngine, "null_block", ops::FillBytes{m.null_block(), 0});
}

void EngineModel::digest_logits(std::uint64_t* out) { impl_->logits_digest = out; }

std::int64_t EngineModel::draft_rows(std::int64_t requests) const {
  const Dims& d = impl_->dims;
  if (!impl_->draft_loaded || !d.parallel_drafting) return 0;
  const std::int64_t rows = requests * d.speculative;
  const bool clamped = impl_->context.seam_is("profile.draft_batch", "clamped");
  return clamped ? std::min(rows, d.max_tokens) : rows;
}

}  // namespace warmgate::engine
