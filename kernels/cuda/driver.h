// The few calls of the driver's own interface that the runtime has no form of. Found through the
// runtime, so that nothing links libcuda and programs start where there is no driver.
#pragma once

#include <cuda.h>

#include <string>

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
  CUresult (*function_count)(unsigned int*, CUmodule);
  CUresult (*functions)(CUfunction*, unsigned int, CUmodule);
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, CUstream, void**, void**);
  CUresult (*error_name)(CUresult, const char**);
  CUresult (*error_text)(CUresult, const char**);
};

/// Throws DeviceFault naming the function that the driver does not have.
const Driver& driver();
/// Throws DeviceFault (runtime.h) unless `result` is success; an out-of-memory error gets the name
/// that the runtime has for it and says how much is free.
void check(CUresult result, const char* call);

/// What an allocation that failed is told as: "out of memory: N of M bytes free", of the device
/// whoever uses it; "out of memory" where the runtime does not tell.
std::string out_of_memory();

}  // namespace warmgate::kernels::cuda
