// What a step stores: window keys, state rows, compressed entries, indexer keys.
#include "harness/engine/checks/numerics.h"
#include "harness/engine/checks/read.h"
#include "kernels/reference/cache.h"
#include "kernels/reference/compare.h"
#include "kernels/reference/compressor.h"
#include "kernels/reference/linear.h"
#include "kernels/reference/number.h"

namespace warmgate::engine::checks {

using reference::View;

// The bytes that stand for the key, exactly, given its bf16 row; what was rotated in fp32, nearly.
void Numerics::check_window_key(const LayerRef& ref) {
  const LayerState& layer = state_of(ref);
  PageReader pages(layer.swa.view);
  check("window_key", ref, [&](Comparison& c) {
    c.exact = true;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::int64_t t = tokens_[i], p = position(t);
      const reference::Place at = reference::place(table(layer.swa.group, t), pages.rows(), p);
      const auto stored = reference::ds_mla_row(pages.page(at.block), pages.rows(), at.row);
      const Vector key = reference::rotate(kv_.row(static_cast<std::int64_t>(i)), rope(layer), p);
      const auto right = reference::encode_ds_mla(key);
      c.mismatches += reference::mismatches(reference::Bytes(stored.data).first(reference::kNope),
                                            reference::Bytes(right.data).first(reference::kNope));
      c.mismatches += reference::mismatches(stored.scale, right.scale);
      row(c, reference::bf16_values(reference::Bytes(stored.data).subspan(reference::kNope)),
          View(key).subspan(reference::kNope));
    }
  });
}

void Numerics::check_state(const LayerRef& ref, std::string_view tensor, const BoundCache& state,
                           const Tensor& ape, const Matrix& scores) {
  const LayerState& layer = state_of(ref);
  check(tensor, ref, [&](Comparison& c) {
    const std::int64_t columns = ape.last();
    const reference::CompressorShape shape{layer.ratio, layer.ratio == 4 ? columns / 2 : columns};
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::int64_t t = tokens_[i], p = position(t);
      Matrix offsets(layer.ratio, columns);
      offsets.set_row(p % layer.ratio, row_of(ape, p % layer.ratio));
      row(c, state_at(state.view, table(state.group, t), p),
          reference::state_row(shape, scores.row(static_cast<std::int64_t>(i)), offsets, p));
    }
  });
}

std::vector<std::pair<std::int64_t, std::int64_t>> Numerics::made_entries(
    std::int64_t ratio) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (const std::int64_t t : tokens_) {
    const std::int64_t p = position(t), entry = (p + 1) / ratio - 1;
    const std::int64_t end = ratio * entry + ratio - 1, token = t - (p - end);
    if (entry < 0 || end < request(t).first) continue;
    if (out.empty() || out.back().first != token) out.emplace_back(token, entry);
  }
  return out;
}

reference::Vector Numerics::entry_of_states(const LayerState& layer, const BoundCache& state,
                                            std::int64_t dim, WeightId norm, std::int64_t token,
                                            std::int64_t entry) const {
  const reference::CompressorShape shape{layer.ratio, dim};
  std::vector<std::optional<Vector>> rows;
  for (const std::int64_t p : reference::pooled_positions(shape, entry)) {
    if (p < 0) {
      rows.emplace_back();
    } else {
      rows.emplace_back(state_at(state.view, table(state.group, token), p));
    }
  }
  return reference::compressed_entry(shape, rows, all_of(layer.w(norm)), eps_, rope(layer), entry);
}

void Numerics::check_entries(const LayerRef& ref) {
  const LayerState& layer = state_of(ref);
  PageReader pages(layer.compressed.view);
  check("compressed_key", ref, [&](Comparison& c) {
    for (const auto& [token, entry] : made_entries(layer.ratio)) {
      const Vector right = entry_of_states(layer, layer.state, dims_.head_dim,
                                           WeightId::kCompressorNorm, token, entry);
      const auto at = reference::place(table(layer.compressed.group, token), pages.rows(), entry);
      const auto stored = reference::ds_mla_row(pages.page(at.block), pages.rows(), at.row);
      row(c, reference::decode_ds_mla(stored), reference::expected_ds_mla(right, stored));
    }
  });
}

void Numerics::check_index_keys(const LayerRef& ref) {
  const LayerState& layer = state_of(ref);
  PageReader pages(layer.indexer.view);
  check("indexer_key", ref, [&](Comparison& c) {
    for (const auto& [token, entry] : made_entries(layer.ratio)) {
      const Vector right = entry_of_states(layer, layer.indexer_state, dims_.index_dim,
                                           WeightId::kIndexerCompressorNorm, token, entry);
      const auto at = reference::place(table(layer.indexer.group, token), pages.rows(), entry);
      const reference::Bytes page = pages.page(at.block);
      if (dims_.fp4_indexer) {
        const auto stored = reference::indexer_row_fp4(page, pages.rows(), at.row);
        row(c, reference::decode_indexer_fp4(stored),
            reference::expected_indexer_fp4(right, stored));
      } else {
        const auto stored = reference::indexer_row(page, pages.rows(), at.row);
        row(c, reference::decode_indexer(stored), reference::expected_indexer(right, stored));
      }
    }
  });
}

}  // namespace warmgate::engine::checks
