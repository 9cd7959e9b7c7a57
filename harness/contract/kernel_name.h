// A kernel's name as people say it.
#pragma once

#include <string>
#include <string_view>

namespace warmgate::contract {

/// "at::native::elementwise_kernel" for _ZN2at6native18elementwise_kernelILi128E…: without template
/// arguments, parameters and return type, at most 80 characters. Other names as they are.
std::string kernel_name(std::string_view symbol);

}  // namespace warmgate::contract
