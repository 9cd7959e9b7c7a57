// CUDA's core dump of a process that hangs: which kernels its devices were running. The driver
// writes one where CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1 is in the environment and somebody writes
// to the pipe that CUDA_COREDUMP_PIPE names (CUDA-GDB's manual, "GPU core dump support"). The
// process goes on with a failed context.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::target {

struct RunningKernel {
  std::string name;  // as the device code's symbol table has it, mangled; "" if no image holds it
  std::array<std::uint32_t, 3> grid{}, block{};
  int device = 0;  // index among those of the process
};

/// The kernels in a dump: the grid tables' entry addresses, looked up in the symbols of the
/// relocated images beside them (CUDA 13's cudacoredump.h: section types SHT_LOUSER + 12 and + 7).
/// nullopt if these bytes are no such dump, or are cut short. At most 64 kernels.
std::optional<std::vector<RunningKernel>> kernels_of_core(std::string_view bytes);

/// Asks for a dump through `pipe`; false where nobody reads it.
bool ask_for_core(const std::filesystem::path& pipe);

/// The bytes of `file` once it is whole: its section table lies within it. nullopt while it is not.
std::optional<std::string> whole_core(const std::filesystem::path& file);

}  // namespace warmgate::target
