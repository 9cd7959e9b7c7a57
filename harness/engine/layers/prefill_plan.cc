#include "harness/engine/layers/prefill_plan.h"

#include <algorithm>

namespace warmgate::engine {

void plan_prefill_chunks(std::span<const std::int32_t> seq_lens,
                         std::span<const std::int32_t> gather_lens,
                         std::span<const std::int32_t> query_lens, std::int64_t ratio,
                         std::int64_t row_limit, std::vector<PrefillChunk>& chunks) {
  chunks.clear();
  const std::size_t count = seq_lens.size();
  std::int64_t token = 0;
  for (std::size_t i = 0; i < count;) {
    PrefillChunk chunk;
    chunk.begin = static_cast<std::int64_t>(i);
    chunk.token_begin = token;
    std::int64_t window_part = 0;
    for (; i < count; ++i) {
      const std::int64_t compressed = ratio > 1 ? seq_lens[i] / ratio : 0;
      const std::int64_t longest_compressed = std::max(chunk.compressed, compressed);
      const std::int64_t longest_window = std::max<std::int64_t>(window_part, gather_lens[i]);
      const std::int64_t requests = static_cast<std::int64_t>(i) - chunk.begin + 1;
      if (requests > 1 && requests * (longest_compressed + longest_window) > row_limit) break;
      chunk.compressed = longest_compressed;
      window_part = longest_window;
      chunk.gathered_compressed += compressed;
      chunk.gathered_window += gather_lens[i];
      chunk.tokens += query_lens[i];
    }
    chunk.end = static_cast<std::int64_t>(i);
    chunk.rows = chunk.compressed + window_part;
    token += chunk.tokens;
    chunks.push_back(chunk);
  }
}

}  // namespace warmgate::engine
