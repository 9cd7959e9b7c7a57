// Arguments of the run-time compiled metadata kernels, as one launch takes them. Shapes:
// kernels/jit/bodies/*.cuh.
#pragma once

#include <cstdint>
#include <string_view>

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

/// A key's kernel as its device has it: loaded object code, or 0 where its body runs on the host.
struct JitKernel {
  const jit::Key& key;
  std::uint64_t function = 0;
};
/// What `compiler` has for a key that it compiled, loaded where the device runs object code. Throws
/// std::runtime_error where the device needs some and there is none.
std::uint64_t load_kernel(const jit::Key& key, jit::Compiler& compiler, std::string_view arch,
                          jit::Mode mode, const Device& device);

/// Runs the kernel with its key's constants. Throws jit::KernelFault where a device would trap,
/// wrap or write garbage, std::runtime_error on a device without these kernels.
void run(const JitKernel& kernel, const ComputePrefillArguments& a, const Device& device);
void run(const JitKernel& kernel, const BuildChunkArguments& a, const Device& device);
void run(const JitKernel& kernel, const CombineArguments& a, const Device& device);

/// The key's kernel on boundary inputs and poisoned outputs against the integer reference: the
/// loaded code where the device has it, else its body on the host.
jit::HostCheck probe(const JitKernel& kernel, const Device& device);

}  // namespace warmgate::engine::ops
