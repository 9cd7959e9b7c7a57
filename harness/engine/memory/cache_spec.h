// What each cache module of a layer stores: rows, pages, padding.
// Origin: vLLM at d40c3e3c00, v1/kv_cache_interface.py and
// models/deepseek_v4/{attention,compressor}.py; page sizes are worked out from them and agree with
// the group sizes printed by vllm-project/vllm#54703.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/engine/layers/dims.h"

namespace warmgate::engine {

enum class CacheKind : std::uint8_t {
  kSwa,
  kC4Key,
  kC4IndexerKey,
  kC128Key,
  kC4State,
  kC4IndexerState,
  kC128State
};
std::string_view to_string(CacheKind kind);

/// Attention that the module's pages must stay available for.
enum class CacheClass : std::uint8_t { kFullMla, kC4State, kC128State, kSwa };

struct CacheSpec {
  CacheKind kind;
  CacheClass cls;
  std::int64_t block_tokens = 0;  // tokens that one block covers
  std::int64_t rows = 0;          // rows stored a block
  std::int64_t row_bytes = 0;
  std::int64_t window = 0;        // 0: everything is kept
  std::int64_t page_bytes = 0;    // rows · row_bytes
  std::int64_t padded_bytes = 0;  // next multiple of the layout's alignment
};

CacheSpec cache_spec(CacheKind kind, const Dims& dims);

/// A cache module of a layer, e.g. "layers.3.attn.swa_cache".
struct CacheModule {
  std::string name;
  std::int64_t layer = 0;
  CacheSpec spec;
};
/// The modules of one layer, in the order in which they register. A swaonly layer has one: its
/// swa_cache child; the attention module itself declares none.
std::vector<CacheKind> cache_kinds(Kind kind);
std::vector<CacheModule> cache_modules(const Dims& dims, const std::vector<Kind>& layer_kinds);

}  // namespace warmgate::engine
