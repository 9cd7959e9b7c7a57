// What a GPU's failure is told as. Without CUDA's headers: it crosses into the engine.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace warmgate::kernels::cuda {

/// The GPU or its runtime failed. `call`: the kernel or function in which it showed; `code`: e.g.
/// cudaErrorIllegalAddress. After an illegal access the process can use the device no more.
class DeviceFault : public std::runtime_error {
 public:
  DeviceFault(std::string call_in, std::string code_in, const std::string& text)
      : std::runtime_error(call_in + ": " + code_in + " (" + text + ")"),
        call(std::move(call_in)),
        code(std::move(code_in)) {}
  std::string call, code;
};

}  // namespace warmgate::kernels::cuda
