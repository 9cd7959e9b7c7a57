#include "harness/engine/memory/cache_spec.h"

#include <stdexcept>

#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

std::string_view to_string(CacheKind kind) {
  switch (kind) {
    case CacheKind::kSwa:
      return "swa_cache";
    case CacheKind::kC4Key:
      return "compressed_cache";
    case CacheKind::kC128Key:
      return "compressed_cache";
    case CacheKind::kC4IndexerKey:
      return "indexer.k_cache";
    case CacheKind::kC4State:
      return "compressor.state_cache";
    case CacheKind::kC128State:
      return "compressor.state_cache";
    case CacheKind::kC4IndexerState:
      return "indexer.compressor.state_cache";
  }
  return "?";
}

namespace {

// One row of the fp8_ds_mla layout: D-R e4m3 values, R bf16 values, one exponent byte for each 64
// values, padded to 8. 584 bytes for 448 + 64.
std::int64_t key_row_bytes(const Dims& d) {
  const std::int64_t nope = d.head_dim - d.rope_dim;
  return nope + 2 * d.rope_dim + round_up(ceil_div(nope, 64), 8);
}

// Pages are padded to whole value rows of the layout (576 bytes for 448 + 64).
std::int64_t page_alignment(const Dims& d) { return d.head_dim + d.rope_dim; }

}  // namespace

CacheSpec cache_spec(CacheKind kind, const Dims& d) {
  constexpr std::int64_t kFullBlock = 256, kFloat = 4;
  const std::int64_t indexer_row = d.indexer_value_bytes() + d.indexer_scale_bytes();
  CacheSpec s{};
  s.kind = kind;
  switch (kind) {
    case CacheKind::kSwa:
      s = {kind, CacheClass::kSwa, 64, 64, key_row_bytes(d), d.window};
      break;
    case CacheKind::kC4Key:
      s = {kind, CacheClass::kFullMla, kFullBlock, kFullBlock / 4, key_row_bytes(d), 0};
      break;
    case CacheKind::kC4IndexerKey:
      s = {kind, CacheClass::kFullMla, kFullBlock, kFullBlock / 4, indexer_row, 0};
      break;
    case CacheKind::kC128Key:
      s = {kind, CacheClass::kFullMla, kFullBlock, kFullBlock / 128, key_row_bytes(d), 0};
      break;
    case CacheKind::kC4State:  // [kv | score], two column sets each
      s = {kind, CacheClass::kC4State, 4, 4, 4 * d.head_dim * kFloat, 8};
      break;
    case CacheKind::kC4IndexerState:
      s = {kind, CacheClass::kC4State, 4, 4, 4 * d.index_dim * kFloat, 8};
      break;
    case CacheKind::kC128State:
      s = {kind, CacheClass::kC128State, 8, 8, 2 * d.head_dim * kFloat, 128};
      break;
  }
  s.page_bytes = s.rows * s.row_bytes;
  s.padded_bytes = round_up(s.page_bytes, page_alignment(d));
  return s;
}

std::vector<CacheKind> cache_kinds(Kind kind) {
  using enum CacheKind;
  switch (kind) {
    case Kind::kSwaOnly:
      return {kSwa};
    case Kind::kC4a:
      return {kSwa, kC4Key, kC4State, kC4IndexerKey, kC4IndexerState};
    case Kind::kC128a:
      return {kSwa, kC128Key, kC128State};
  }
  throw std::logic_error("layer kind");
}

std::vector<CacheModule> cache_modules(const Dims& dims, const std::vector<Kind>& layer_kinds) {
  std::vector<CacheModule> out;
  for (std::size_t layer = 0; layer < layer_kinds.size(); ++layer) {
    for (const CacheKind kind : cache_kinds(layer_kinds[layer])) {
      std::string name = "layers." + std::to_string(layer) + ".attn.";
      name += to_string(kind);
      out.push_back({std::move(name), static_cast<std::int64_t>(layer), cache_spec(kind, dims)});
    }
  }
  return out;
}

}  // namespace warmgate::engine
