#include "kernels/cuda/driver.h"

#include <cuda_runtime_api.h>

#include "kernels/cuda/runtime.h"

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
  if (cudaGetDriverEntryPointByVersion("cuModuleGetFunctionCount", &found, 12040, cudaEnableDefault,
                                       &status) == cudaSuccess)
    d.function_count = reinterpret_cast<decltype(d.function_count)>(found);
  found = nullptr;
  if (cudaGetDriverEntryPointByVersion("cuModuleEnumerateFunctions", &found, 12040,
                                       cudaEnableDefault, &status) == cudaSuccess)
    d.functions = reinterpret_cast<decltype(d.functions)>(found);
  find(d.launch, "cuLaunchKernel");
  find(d.error_name, "cuGetErrorName");
  find(d.error_text, "cuGetErrorString");
  return d;
}

}  // namespace

const Driver& driver() {
  static const Driver found = find_all();
  return found;
}

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    throw DeviceFault(call, "cudaErrorMemoryAllocation", out_of_memory());
  const char* name = nullptr;
  const char* text = nullptr;
  driver().error_name(result, &name);
  driver().error_text(result, &text);
  throw DeviceFault(call, name != nullptr ? name : "unknown error", text != nullptr ? text : "");
}

std::string out_of_memory() {
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return "out of memory";
  return "out of memory: " + std::to_string(free) + " of " + std::to_string(total) + " bytes free";
}

}  // namespace warmgate::kernels::cuda
