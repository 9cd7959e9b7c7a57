// The kernel bodies as host functions: one launch each, with a key's constants. They throw
// KernelFault where the device would trap, wrap, or quietly write garbage.
#pragma once

#include <cstdint>

#include "kernels/jit/checked.h"
#include "kernels/jit/jit.h"

namespace warmgate::jit {

/// int32 elements in host memory; `phase` = elements past a 16-byte boundary that the device
/// pointer would lie (0..3).
struct InBuffer {
  const std::int32_t* data = nullptr;
  std::int64_t size = 0;
  int phase = 0;
};
struct OutBuffer {
  std::int32_t* data = nullptr;
  std::int64_t size = 0;
};

/// Shapes: kernels/jit/bodies/compute_prefill_metadata.cuh.
struct ComputePrefillLaunch {
  OutBuffer gather_lens;
  InBuffer query_start_loc, seq_lens;
  std::int32_t num_prefills = 0, num_decodes = 0, window = 0;
};
/// Shapes: kernels/jit/bodies/build_prefill_chunk_metadata.cuh.
struct BuildChunkLaunch {
  OutBuffer key_starts, key_ends, key_requests;
  InBuffer query_start_loc, uncompressed_seq_lens;
  std::int32_t query_slice_start = 0, query_slice_stop = 0, num_requests = 0;
};
/// Shapes: kernels/jit/bodies/combine_topk_swa_indices.cuh. `num_workers` = grid dimension y.
struct CombineLaunch {
  OutBuffer combined_indices, combined_lens;
  InBuffer topk_indices, query_start_loc, seq_lens, gather_lens;
  std::int32_t combined_stride = 0, topk_stride = 0, M = 0, N = 0;
  std::int32_t num_requests = 0, num_workers = 128;
};

/// Throw KernelFault, and std::runtime_error if the key is not one of this kernel's. `threads` a
/// block: results do not depend on it.
void run_on_host(const Key& key, const ComputePrefillLaunch& launch, int threads = 1);
void run_on_host(const Key& key, const BuildChunkLaunch& launch, int threads = 1);
void run_on_host(const Key& key, const CombineLaunch& launch, int threads = 1);

/// Who launches a key's kernel. Buffers are the host's: one that launches elsewhere copies outputs
/// there and back, so that what nobody writes stays as it was.
class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual void run(const Key& key, const ComputePrefillLaunch& launch) = 0;
  virtual void run(const Key& key, const BuildChunkLaunch& launch) = 0;
  virtual void run(const Key& key, const CombineLaunch& launch) = 0;
};
/// As check_on_host(), with the launches made by `launcher`. What it throws as KernelFault is the
/// key's fault; `device_fault`: the device failed.
HostCheck check_with(Launcher& launcher, const Key& key);

}  // namespace warmgate::jit
