// How kernels of this folder are started. Each header declares, for parameters P of kernels/cpu
// whose pointers are device memory,
//   Reason can_run(const P&, const Launch&)   nothing, or why this kernel cannot
//   void run(const P&, const Launch&)         enqueues on the stream; no allocation, no waiting
// so that every call can be captured into a graph.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// Throws DeviceFault unless `error` is success. `call`: the kernel or function. Out of memory says
/// how much of the device's is free and, of an allocation, `asked_bytes`; it is no longer the
/// runtime's last error then.
void check(cudaError_t error, const char* call, std::int64_t asked_bytes = 0);
/// After a launch: bad launch parameters show here.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace warmgate::kernels::cuda
