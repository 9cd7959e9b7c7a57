// Run-time compiled kernels: keys, where their code comes from, what a compiler says of them.
// One source a kernel, valid as CUDA C++ for NVRTC and as C++20 for the host with checked integers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warmgate::jit {

/// A compile key: kernel name and constants in declaration order. Text form
/// `Kernel{NAME=value,…}`; integer classes are `one`, `div16`, `any`; alignment is one string of T
/// and F in argument order. That text is the key in events, cache, behaviours and `allow`.
struct Key {
  std::string kernel;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string text() const;
  bool operator==(const Key&) const = default;
};
/// Throws std::runtime_error naming what is wrong with the text.
Key parse_key(std::string_view text);

enum class Mode { kStrict, kLenient };  // is a constant division by zero an error?
enum class Source { kMemory, kDisk, kCompiler };
std::string_view to_string(Source source);

/// What a cache on disk had to do with a compilation.
enum class Cached {
  kOff,        // there is none
  kKept,       // the result came from it, or lies in it now for others to find
  kUnwritable  // it can be read, but nothing can be kept in it, or its lock cannot be taken
};
std::string_view to_string(Cached cached);

struct Compiled {
  bool ok = false;
  Source source = Source::kCompiler;
  double ms = 0;
  std::string log;      // the compiler's words, first 4 KiB; for the host half the fault's message
  std::string backend;  // "nvrtc" or "host"
  std::int64_t bytes = 0;  // of the object code; 0 for the host half
  Cached cached = Cached::kOff;
  bool rebuilt = false;  // an entry was there and did not verify
};

/// Object code that holds a key's kernel. Keys that were compiled together share one program.
struct Code {
  std::string program;  // its address: what two keys' code has in common
  std::shared_ptr<const std::string> cubin;
  std::string function;  // as the cubin calls it; "" if that is not known
};

/// What running the kernel's body on the host with checked integers gave.
struct HostCheck {
  bool ok = false;
  /// "" if ok; division_by_zero overflow bad_shift out_of_bounds misaligned endless; class_mismatch
  /// (an argument outside its declared class), unwritten, wrong_result (against the reference),
  /// bad_key.
  std::string fault;
  std::string message;  // expression and operands
  std::string file;     // of the kernel source
  int line = 0;
};
HostCheck check_on_host(const Key& key);

/// Is NVRTC on this machine, and which. Found by its file, once, when first asked ($WARMGATE_NVRTC
/// names another file, or `none`); loaded at the first compilation that no cache answers.
struct NvrtcInfo {
  bool available = false;
  std::string version;  // "13.0"
  std::string path, why_not;
};
const NvrtcInfo& nvrtc();

/// Why this machine's NVRTC cannot compile for `arch` ("NVRTC 13.0 has no sm_42; it has sm_75, …"),
/// "" if it can, or if there is no NVRTC that could say. Cheap for architectures that every release
/// in use knows; asks the library otherwise, once each. Thread-safe.
std::string no_such_architecture(const std::string& arch);

/// Whether one process waits for another that builds the same entry.
enum class CacheLocks { kHeld, kNone };

enum class Backend { kAuto, kNvrtc, kHost };  // auto = NVRTC if it is there, else the host half

struct CompilerOptions {
  std::filesystem::path cache_dir;  // "" = no disk cache
  Backend backend = Backend::kAuto;
  CacheLocks locks = CacheLocks::kHeld;
  /// Part of every entry's address: two compilers of different salts share nothing.
  std::string salt = {};
};

/// Compiles keys, through a memory and a disk cache. The disk cache is safe under concurrent cold
/// starts (atomic rename, a lock per entry) and under damage (an entry that does not verify is
/// rebuilt). Failures are cached too, as failures. Thread-safe.
class Compiler {
 public:
  /// Throws std::runtime_error if NVRTC is insisted on (kNvrtc) and not there.
  explicit Compiler(CompilerOptions options);
  ~Compiler();
  /// One key, one architecture. A key of an unknown kernel gives ok = false with a log.
  Compiled compile(const Key& key, std::string_view arch, Mode mode);
  /// Compiles ahead what compile() will be asked for and no cache has: one program per kernel with
  /// name expressions (10 ms a key instead of 36). A key that cannot be part of it (it fails) is
  /// left to compile(), which treats it alone. compile() then answers as if it had compiled: source
  /// compiler at the first time, ms and bytes the key's share of the program.
  void prepare(const std::vector<Key>& keys, std::string_view arch, Mode mode);
  /// prepare() and compile() of all keys of one architecture, strictly. Result i belongs to
  /// keys[i].
  std::vector<Compiled> compile_all(const std::vector<Key>& keys, std::string_view arch);
  /// The object code of a key that compile() was asked for and that compiled, for a device to load;
  /// nothing where it did not, or where the host half stood in for it.
  std::optional<Code> code(const Key& key, std::string_view arch, Mode mode);
  /// "nvrtc" or "host": what compile() uses. An NVRTC that is there but does not load makes it the
  /// host half from then on.
  std::string_view backend() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// $WARMGATE_KERNEL_CACHE, else $XDG_CACHE_HOME/warmgate/kernels, else ~/.cache/warmgate/kernels,
/// else "" (no disk cache).
std::filesystem::path default_cache_dir();

/// The metadata kernels, in the order of compilation in warmup.
inline constexpr std::string_view kComputePrefillMetadata = "ComputePrefillMetadata";
inline constexpr std::string_view kBuildPrefillChunkMetadata = "BuildPrefillChunkMetadata";
inline constexpr std::string_view kCombineTopkSwaIndices = "CombineTopkSwaIndices";

}  // namespace warmgate::jit
