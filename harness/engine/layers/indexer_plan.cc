#include "harness/engine/layers/indexer_plan.h"

#include <algorithm>

namespace warmgate::engine {

void plan_indexer_chunks(std::span<const std::int32_t> seq_lens,
                         std::span<const std::int32_t> query_lens, std::int64_t ratio,
                         std::int64_t max_keys, std::int64_t max_logits_bytes,
                         std::vector<IndexerChunk>& chunks) {
  chunks.clear();
  const std::int64_t max_logits = max_logits_bytes / 4;
  const std::size_t count = seq_lens.size();
  std::int64_t token = 0;
  for (std::size_t i = 0; i < count;) {
    IndexerChunk chunk;
    chunk.begin = static_cast<std::int64_t>(i);
    chunk.token_begin = token;
    std::int64_t queries = 0;
    for (; i < count; ++i) {
      const std::int64_t keys = chunk.keys + seq_lens[i] / ratio;
      const std::int64_t all = queries + query_lens[i];
      const bool first = static_cast<std::int64_t>(i) == chunk.begin;
      if (!first && (keys > max_keys || all * keys > max_logits)) break;
      chunk.keys = keys;
      queries = all;
    }
    chunk.end = static_cast<std::int64_t>(i);
    token += queries;
    if (chunk.keys == 0) continue;
    // More than one request only ever joins within the bound, so what is cut is a single one.
    const std::int64_t piece = std::max<std::int64_t>(1, max_logits / chunk.keys);
    for (std::int64_t start = 0; start < queries; start += piece) {
      chunk.slice_start = start;
      chunk.slice_stop = std::min(queries, start + piece);
      chunk.gathers = start == 0;
      chunks.push_back(chunk);
    }
  }
}

}  // namespace warmgate::engine
