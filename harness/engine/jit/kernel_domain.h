// From a configuration to keys: what serving can ask for, and what warmup asks for. Both are traced
// from the dispatch functions; the seams warmup.* choose the alternatives that warmup traces.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/engine/jit/dispatch.h"
#include "harness/scenario/resolved.h"

namespace warmgate::engine {

/// The inputs that a configuration can give to the dispatch functions.
struct KernelDomain {
  std::int64_t max_num_seqs = 0;            // S
  std::int64_t max_num_batched_tokens = 0;  // B
  std::int64_t max_model_len = 0;           // L
  std::int64_t index_topk = 0;              // K
  std::int64_t window = 0;
  std::vector<std::int64_t>
      prefill_ratios;  // effective ratios of layers that can run a prefill, distinct
  std::vector<std::int64_t> c128a_widths;  // columns of the C128A index tensor, ascending
  explicit KernelDomain(const scenario::Resolved& config);

  /// Classes that query_slice_start can have. The indexer cuts a request along its queries where
  /// queries * keys * 4 bytes exceeds 512 MiB; sub-chunks start at multiples of what fits.
  std::vector<IntClass> slice_start_classes() const;
};

/// Columns of the C128A index tensor at full stride: ceil(L / 128) rounded up to 128.
std::int64_t c128a_max_width(std::int64_t max_model_len);

/// What serving can reach.
std::vector<ComputePrefillKey> reachable_compute_prefill(const KernelDomain& domain);
std::vector<BuildChunkKey> reachable_build_chunk(const KernelDomain& domain);
std::vector<CombineKey> reachable_combine(const KernelDomain& domain);

/// What warmup compiles, per seams.
std::vector<ComputePrefillKey> warmup_compute_prefill(const scenario::Resolved& config);
std::vector<BuildChunkKey> warmup_build_chunk(const scenario::Resolved& config);
std::vector<CombineKey> warmup_combine(const scenario::Resolved& config);

}  // namespace warmgate::engine
