// A device that failed, as the rest of the engine knows it.
#pragma once

#include "kernels/cuda/fault.h"

namespace warmgate::engine {

using DeviceFault = kernels::cuda::DeviceFault;

}  // namespace warmgate::engine
