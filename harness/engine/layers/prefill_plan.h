// Chunks of prefill requests that share one gathered key buffer.
// Origin: vllm-project/vllm#45061, models/deepseek_v4/nvidia/flashmla.py.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace warmgate::engine {

struct PrefillChunk {
  std::int64_t begin = 0, end = 0;  // requests, counted from the first prefill request
  std::int64_t compressed = 0;      // Nc: longest compressed part
  std::int64_t rows = 0;            // M = Nc + longest gathered window part
  std::int64_t gathered_compressed = 0, gathered_window = 0;  // rows copied, summed
  std::int64_t token_begin = 0, tokens = 0;  // counted from the first prefill token
};

/// Extends a chunk while requests · (Nc + longest window part) <= row_limit; a request that is too
/// long by itself makes a chunk of one. ratio 1 has no compressed part.
/// Spans: one entry a prefill request.
void plan_prefill_chunks(std::span<const std::int32_t> seq_lens,
                         std::span<const std::int32_t> gather_lens,
                         std::span<const std::int32_t> query_lens, std::int64_t ratio,
                         std::int64_t row_limit, std::vector<PrefillChunk>& chunks);

}  // namespace warmgate::engine
