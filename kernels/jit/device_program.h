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

/// What a compilation was for; each has its own cache entries.
enum class Flavour {
  kStrict,   // one key; a constant division by zero is an error
  kLenient,  // one key; it is a warning, as NVRTC has it by default
  kVerdict,  // one of many keys in a strict program: no object code of its own is kept
};
inline Flavour flavour_of(Mode mode) {
  return mode == Mode::kStrict ? Flavour::kStrict : Flavour::kLenient;
}

/// Options that the found NVRTC knows: the fastest code generation that still sees the division.
/// Measured (13.0, CPU ms): 59 keys one by one mid 1815, max 2303, min 1782; as three programs each
/// on three architectures max 2006, mid 2610, min 3181.
std::vector<std::string> nvrtc_options(Flavour flavour, std::string_view arch,
                                       const NvrtcFile& file);
/// All of `keys` are of kernel `spec`.
NvrtcRequest device_program(const KernelSpec& spec, const std::vector<Key>& keys,
                            std::vector<std::string> options);
/// Addresses of one NVRTC: SHA-256 of source, options, architecture, flavour and NVRTC's identity,
/// and of that with the key's text. The first half is hashed once, which is most of the work of a
/// warm start. Thread-safe.
class Addresses {
 public:
  explicit Addresses(const NvrtcFile& file) : file_(file) {}
  std::string of(const KernelSpec& spec, std::string_view key_text, Flavour flavour,
                 std::string_view arch);

 private:
  const NvrtcFile file_;
  std::mutex mutex_;
  std::map<std::tuple<std::string_view, Flavour, std::string>, std::string> prefixes_;
};

}  // namespace warmgate::jit
