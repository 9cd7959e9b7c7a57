// A kernel's body as a program for NVRTC, and the address of what it compiles to.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "kernels/jit/jit.h"
#include "kernels/jit/kernel_table.h"
#include "kernels/jit/nvrtc.h"

namespace warmgate::jit {

/// Options that the found NVRTC knows: the fastest code generation that still sees the division.
/// Measured (13.0, CPU ms) for 24 keys of BuildPrefillChunkMetadata in one program: max 256, mid
/// 600. Strict makes a constant division by zero an error; NVRTC's own default is a warning.
std::vector<std::string> nvrtc_options(Mode mode, std::string_view arch, const NvrtcFile& file);
/// All of `keys` are of kernel `spec`.
NvrtcRequest device_program(const KernelSpec& spec, const std::vector<Key>& keys,
                            std::vector<std::string> options);
/// Addresses of one NVRTC: SHA-256 of source, options, architecture, mode and NVRTC's identity,
/// and of that with the key's text. The first half is hashed once, which is most of the work of a
/// warm start. Thread-safe.
class Addresses {
 public:
  explicit Addresses(const NvrtcFile& file) : file_(file) {}
  std::string of(const KernelSpec& spec, std::string_view key_text, Mode mode,
                 std::string_view arch);

 private:
  const NvrtcFile file_;
  std::mutex mutex_;
  std::map<std::tuple<std::string_view, Mode, std::string>, std::string> prefixes_;
};

}  // namespace warmgate::jit
