#include "kernels/reference/metadata.h"

#include <algorithm>

namespace warmgate::reference {

std::vector<std::int64_t> gather_lens(const std::vector<Request>& prefills, std::int64_t window) {
  std::vector<std::int64_t> out;
  for (const Request& request : prefills) {
    // The window of the first token reaches window - 1 keys back; count those that exist.
    std::int64_t before = 0;
    const std::int64_t first = request.seq_len - request.query_len;
    for (std::int64_t back = 1; back < window && first - back >= 0; ++back) ++before;
    out.push_back(request.query_len + before);
  }
  return out;
}

ChunkMetadata chunk_metadata(const std::vector<Request>& chunk, std::int64_t ratio,
                             std::int64_t slice_start, std::int64_t slice_stop,
                             const ContextParallel& parallel) {
  ChunkMetadata out;
  const auto mine = [&](std::int64_t entry) {
    return (entry / parallel.interleave) % parallel.world == parallel.rank;
  };
  std::int64_t token = 0;
  for (std::size_t r = 0; r < chunk.size(); ++r) {
    const auto start = static_cast<std::int64_t>(out.key_requests.size());
    for (std::int64_t j = 0; (j + 1) * ratio <= chunk[r].seq_len; ++j) {
      if (mine(j)) out.key_requests.push_back(static_cast<std::int64_t>(r));
    }
    std::int64_t position = chunk[r].seq_len - chunk[r].query_len;
    for (std::int64_t i = 0; i < chunk[r].query_len; ++i, ++token, ++position) {
      if (token < slice_start || token >= slice_stop) continue;
      std::int64_t visible = 0;
      for (std::int64_t j = 0; (j + 1) * ratio <= position + 1; ++j) visible += mine(j) ? 1 : 0;
      out.key_starts.push_back(start);
      out.key_ends.push_back(start + visible);
    }
  }
  return out;
}

std::vector<std::vector<std::int64_t>> combined_indices(
    const std::vector<Request>& chunk, const std::vector<std::int64_t>& gathered,
    const std::vector<std::vector<std::int64_t>>& topk_of_token, std::int64_t ratio,
    std::int64_t top_k, std::int64_t window, std::int64_t M, std::int64_t N) {
  std::vector<std::vector<std::int64_t>> out;
  for (std::size_t b = 0; b < chunk.size(); ++b) {
    const std::int64_t base = M * static_cast<std::int64_t>(b);
    // Raw key of position q lies in row base + N + (q - first gathered position).
    const std::int64_t oldest = chunk[b].seq_len - gathered[b];
    for (std::int64_t i = 0; i < chunk[b].query_len; ++i) {
      const std::int64_t position = chunk[b].seq_len - chunk[b].query_len + i;
      const auto& topk = topk_of_token[out.size()];
      std::vector<std::int64_t> row;
      for (std::int64_t n = 0; n < top_k && (n + 1) * ratio <= position + 1; ++n) {
        row.push_back(base + topk[static_cast<std::size_t>(n)]);
      }
      for (std::int64_t q = std::max<std::int64_t>(0, position - window + 1); q <= position; ++q) {
        row.push_back(base + N + q - oldest);
      }
      out.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace warmgate::reference
