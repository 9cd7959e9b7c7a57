// How kernels of this folder are started. Each header declares, for parameters P of kernels/cpu
// whose pointers are device memory,
//   Reason can_run(const P&, const Launch&)   nothing, or why this kernel cannot
//   void run(const P&, const Launch&)         enqueues on the stream; no allocation, no waiting
// so that every call can be captured into a graph.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

#include "kernels/cuda/fault.h"

namespace warmgate::kernels::cuda {

using Reason = std::optional<std::string>;

/// Where and with what a kernel runs. `scratch` is device memory that kernels of one stream use one
/// after the other: its contents are nobody's between two calls.
struct Launch {
  cudaStream_t stream = nullptr;
  void* scratch = nullptr;
  std::size_t scratch_bytes = 0;
  int multiprocessors = 0;
  int arch = 0;  // 10·major + minor: 80, 90, …
};

/// A call of the CUDA runtime failed. `call`: the kernel or function.
class CudaError : public DeviceFault {
 public:
  CudaError(cudaError_t error, const char* call_in)
      : DeviceFault(call_in, cudaGetErrorName(error), cudaGetErrorString(error)) {}
};

inline void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw CudaError(error, call);
}
/// After a launch: bad launch parameters show here.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace warmgate::kernels::cuda
