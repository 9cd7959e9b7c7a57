// What the metadata kernels must compute, element by element from the formulas, with nothing in
// common with the kernel bodies: 64-bit, one loop a question, no tiles, no slices of pointers.
#pragma once

#include <cstdint>
#include <vector>

namespace warmgate::reference {

/// One request of a batch: its tokens of this step and its length after them.
struct Request {
  std::int64_t query_len = 0;
  std::int64_t seq_len = 0;  // position of its last token + 1
};

/// Raw keys to gather for each prefill request: query_len + min(prefix_len, window - 1).
std::vector<std::int64_t> gather_lens(const std::vector<Request>& prefills, std::int64_t window);

/// Decode context parallelism: entry j belongs to rank (j / interleave) mod world.
struct ContextParallel {
  std::int64_t rank = 0, world = 1, interleave = 1;
};

struct ChunkMetadata {
  std::vector<std::int64_t> key_starts, key_ends;  // per token of the slice
  std::vector<std::int64_t> key_requests;          // per gathered key of the chunk
};
/// A token at position p sees the entries j of its request with j < (p + 1) / ratio; ratio >= 1.
ChunkMetadata chunk_metadata(const std::vector<Request>& chunk, std::int64_t ratio,
                             std::int64_t slice_start, std::int64_t slice_stop,
                             const ContextParallel& parallel);

/// For each token of the chunk the workspace rows it attends to, in order: request b's rows start
/// at M * b, compressed entries first, from N on the last gather_len raw keys.
std::vector<std::vector<std::int64_t>> combined_indices(
    const std::vector<Request>& chunk, const std::vector<std::int64_t>& gathered,
    const std::vector<std::vector<std::int64_t>>& topk_of_token, std::int64_t ratio,
    std::int64_t top_k, std::int64_t window, std::int64_t M, std::int64_t N);

}  // namespace warmgate::reference
