// Chunks of prefill requests that the indexer scores at once.
// Origin: vLLM at d40c3e3c00, v1/attention/backends/mla/indexer.py split_indexer_prefill_chunks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace warmgate::engine {

struct IndexerChunk {
  std::int64_t begin = 0, end = 0;  // requests, counted from the indexer's first prefill
  std::int64_t token_begin = 0;     // of the chunk, counted from the first prefill token
  std::int64_t slice_start = 0, slice_stop = 0;  // queries of this piece, inside the chunk
  std::int64_t keys = 0;                         // compressed keys of all its requests
  bool gathers = true;                           // a later piece of a cut request reuses the keys
  std::int64_t queries() const { return slice_stop - slice_start; }
};

/// Chunks with Σ keys <= max_keys and queries·keys·4 <= max_logits_bytes. A request that breaks the
/// second bound by itself is cut along its queries. A chunk without keys is dropped.
void plan_indexer_chunks(std::span<const std::int32_t> seq_lens,
                         std::span<const std::int32_t> query_lens, std::int64_t ratio,
                         std::int64_t max_keys, std::int64_t max_logits_bytes,
                         std::vector<IndexerChunk>& chunks);

}  // namespace warmgate::engine
