// cuBLASLt, opened at run time: programs start without it and say what they lack.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

namespace warmgate::kernels::cuda {

/// y[b][t,o] = Σ_k x[b][t,k]·w[b][o,k], b < batch; x, w bf16, y bf16 or fp32, sums fp32. Strides in
/// elements.
struct Product {
  std::int64_t tokens = 0, outputs = 0, inputs = 0, batch = 1;
  const void* x = nullptr;
  std::int64_t x_stride = 0, x_batch = 0;
  const void* w = nullptr;
  std::int64_t w_stride = 0, w_batch = 0;
  void* y = nullptr;
  std::int64_t y_stride = 0, y_batch = 0;
  bool y_fp32 = false;
};

/// Where it was found, or why there is none. WARMGATE_CUBLASLT names a file, or none.
const std::string& cublaslt_note();
bool have_cublaslt();
/// Begins to open it, on a thread of its own: it takes a tenth of a second, in which a device can
/// be opened. The process's end waits for it.
void open_cublaslt_early();

/// Enqueues the product. False where cuBLASLt has no kernel for it. Addresses and rows are
/// multiples of 16 bytes. The kernel is chosen once for all numbers of tokens between two powers of
/// two, so that a number that was not seen before costs little. `workspace` [workspace_bytes] is
/// free until the stream is done.
bool multiply(const Product& p, void* workspace, std::size_t workspace_bytes, cudaStream_t stream);

}  // namespace warmgate::kernels::cuda
