// Arguments of the run-time compiled metadata kernels, as one launch takes them. Shapes:
// kernels/jit/bodies/*.cuh.
#pragma once

#include "harness/engine/ops/device.h"
#include "harness/engine/ops/tensor.h"
#include "kernels/jit/jit.h"

namespace warmgate::engine::ops {

struct ComputePrefillArguments {
  Tensor gather_lens;            // [prefills] out
  Tensor query_start, seq_lens;  // [>=decodes+prefills+1], [>=decodes+prefills]
  std::int64_t prefills = 0, decodes = 0, window = 0;
};
struct BuildChunkArguments {
  Tensor key_starts, key_ends;   // [slice_stop-slice_start] out
  Tensor key_requests;           // [keys of the chunk] out
  Tensor query_start, seq_lens;  // [requests+1], [requests] of the chunk
  std::int64_t slice_start = 0, slice_stop = 0, requests = 0;
};
struct CombineArguments {
  Tensor indices, lens;  // [>=tokens,width], [>=tokens] out; entries past lens stay as they were
  Tensor topk;           // [>=tokens,columns], or of no rows where none is read
  Tensor query_start, seq_lens, gather_lens;  // [requests+1], [requests], [requests] of the chunk
  std::int64_t rows = 0,
               compressed_rows = 0;  // M, N: workspace rows a request, before the window's
  std::int64_t requests = 0, tokens = 0;
};

/// Runs the kernel that `key` names, with its constants. Throws jit::KernelFault where a device
/// would trap, wrap or write garbage, std::runtime_error on a device without these kernels.
void run(const jit::Key& key, const ComputePrefillArguments& a, const Device& device);
void run(const jit::Key& key, const BuildChunkArguments& a, const Device& device);
void run(const jit::Key& key, const CombineArguments& a, const Device& device);

}  // namespace warmgate::engine::ops
