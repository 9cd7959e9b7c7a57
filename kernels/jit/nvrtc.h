// NVRTC, opened at run time: the program links nothing of the CUDA toolkit and needs none of its
// headers. Finding it is cheap (a few stat calls); loading it costs 8 ms and happens at the first
// compilation that no cache answers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::jit {

/// Where the library lies. Looked for in this order: $WARMGATE_NVRTC (a file, or `none` for a
/// machine without it), $CUDA_PATH, $CUDA_HOME, /usr/local/cuda, /opt/cuda, $LD_LIBRARY_PATH, the
/// system's folders, the loader's own search.
struct NvrtcFile {
  std::filesystem::path path;  // "" = not found
  std::string version;         // "13.0", or "13" where only the file's name tells
  std::string identity;        // version, size and time of the file: part of cache addresses
  std::string why_not;
  bool at_least(int major, int minor) const;
};
/// Not cached; nvrtc() of jit.h is.
NvrtcFile find_nvrtc();

struct NvrtcRequest {
  std::string source, name;  // program text, and what errors call it
  std::vector<std::string> options;
  std::vector<std::string> instantiations;  // name expressions
};
struct NvrtcResult {
  bool ok = false;
  std::string log;                     // without the trailing NUL
  std::string cubin;                   // of real architectures
  std::vector<std::string> functions;  // of the instantiations, as the cubin calls them
};

/// A loaded library. Thread-safe: each compile() is a program of its own.
class Nvrtc {
 public:
  /// Throws std::runtime_error saying why the file cannot be used.
  explicit Nvrtc(const std::filesystem::path& path);
  NvrtcResult compile(const NvrtcRequest& request) const;
  /// Compute capabilities without the dot, ascending: 75, 80, …; empty where it does not tell.
  std::vector<int> architectures() const;
  /// The PTX of the program; "" if it does not compile. For tests.
  std::string ptx(const NvrtcRequest& request) const;

 private:
  using Program = void*;
  using Size = int (*)(Program, std::size_t*);
  using Read = int (*)(Program, char*);
  struct Functions {
    int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
    int (*destroy)(Program*);
    int (*add_name)(Program, const char*);
    int (*compile)(Program, int, const char* const*);
    int (*lowered)(Program, const char*, const char**);
    Size log_size, cubin_size, ptx_size;
    Read log, cubin, ptx;
    // Since CUDA 11.2; null in a library that lacks them.
    int (*arch_count)(int*);
    int (*archs)(int*);
  };
  NvrtcResult run(const NvrtcRequest& request, bool want_ptx) const;
  Functions nvrtc_{};
};

}  // namespace warmgate::jit
