// Device "cuda": the GPU behind libwarmgate_cuda.so, which is opened when the device is first asked
// for. Everything else of the engine is built and runs without CUDA.
#pragma once

#include <string>
#include <string_view>

#include "harness/engine/ops/device.h"

namespace warmgate::engine {

inline constexpr std::string_view kCudaName = "cuda";

/// Throws std::runtime_error saying what is missing: the library, the driver, a GPU.
const Device& cuda_device();
/// The device, where cuda_device() has opened it; else null.
const Device* opened_cuda();
/// "" if there is a library and a GPU to use it on; else what is missing. Makes no context.
std::string why_no_cuda();

}  // namespace warmgate::engine
