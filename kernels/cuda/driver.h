// The few calls of the driver's own interface that the runtime has no form of. Found through the
// runtime, so that nothing links libcuda and programs start where there is no driver.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace warmgate::kernels::cuda {

struct Driver {
  CUresult (*address_reserve)(CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long);
  CUresult (*address_free)(CUdeviceptr, size_t);
  CUresult (*create)(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*,
                     unsigned long long);
  CUresult (*release)(CUmemGenericAllocationHandle);
  CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
  CUresult (*unmap)(CUdeviceptr, size_t);
  CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t);
  CUresult (*granularity)(size_t*, const CUmemAllocationProp*, CUmemAllocationGranularity_flags);
  CUresult (*module_load)(CUmodule*, const void*);
  CUresult (*module_unload)(CUmodule);
  CUresult (*module_function)(CUfunction*, CUmodule, const char*);
  CUresult (*functions)(CUfunction*, unsigned int, CUmodule);
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, CUstream, void**, void**);
};

/// Throws DeviceFault naming the function that the driver does not have.
const Driver& driver();
/// As check(cudaError_t) of launch.h: both interfaces number their errors alike since CUDA 10.1,
/// and a fault has the runtime's name for it (cudaErrorAssert) whoever tells it.
void check(CUresult result, const char* call, std::int64_t asked_bytes = 0);

}  // namespace warmgate::kernels::cuda
