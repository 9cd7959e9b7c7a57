#include "kernels/cuda/driver.h"

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

namespace {

constexpr unsigned kVersion = 12000;  // of the functions' signatures above

template <class F>
void find(F& function, const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &status);
  if (error != cudaSuccess || status != cudaDriverEntryPointSuccess || found == nullptr)
    throw DeviceFault(name, error == cudaSuccess ? "not found" : cudaGetErrorName(error),
                      "this driver does not have it");
  function = reinterpret_cast<F>(found);
}

Driver find_all() {
  Driver d{};
  find(d.address_reserve, "cuMemAddressReserve");
  find(d.address_free, "cuMemAddressFree");
  find(d.create, "cuMemCreate");
  find(d.release, "cuMemRelease");
  find(d.map, "cuMemMap");
  find(d.unmap, "cuMemUnmap");
  find(d.set_access, "cuMemSetAccess");
  find(d.granularity, "cuMemGetAllocationGranularity");
  find(d.module_load, "cuModuleLoadData");
  find(d.module_unload, "cuModuleUnload");
  find(d.module_function, "cuModuleGetFunction");
  // Since CUDA 12.4; only needed for code whose function's name nobody knows.
  cudaDriverEntryPointQueryResult status{};
  void* found = nullptr;
  if (cudaGetDriverEntryPointByVersion("cuModuleEnumerateFunctions", &found, 12040,
                                       cudaEnableDefault, &status) == cudaSuccess)
    d.functions = reinterpret_cast<decltype(d.functions)>(found);
  find(d.launch, "cuLaunchKernel");
  return d;
}

}  // namespace

const Driver& driver() {
  static const Driver found = find_all();
  return found;
}

void check(CUresult result, const char* call, std::int64_t asked_bytes) {
  check(static_cast<cudaError_t>(result), call, asked_bytes);
}

void check(cudaError_t error, const char* call, std::int64_t asked_bytes) {
  if (error == cudaSuccess) return;
  std::string text = cudaGetErrorString(error);
  std::size_t free = 0, total = 0;
  if (error == cudaErrorMemoryAllocation) {
    if (asked_bytes > 0) text += ", " + std::to_string(asked_bytes) + " bytes asked for";
    // It may be the host's memory or addresses that ran out: what is told is a fact, not the cause.
    if (cudaMemGetInfo(&free, &total) == cudaSuccess)
      text += "; the device has " + std::to_string(free) + " of " + std::to_string(total) +
              " bytes free";
    cudaGetLastError();  // told here; the next launch has nothing to do with it
  }
  throw DeviceFault(call, cudaGetErrorName(error), text);
}

}  // namespace warmgate::kernels::cuda
