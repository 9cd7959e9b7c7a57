// What is behind Compiler: compiler.cc has one key, compiler_programs.cc several in one program and
// the object code of both.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "kernels/jit/device_program.h"
#include "kernels/jit/disk_cache.h"
#include "kernels/jit/jit.h"
#include "kernels/jit/kernel_table.h"
#include "kernels/jit/nvrtc.h"

namespace warmgate::jit {

using Clock = std::chrono::steady_clock;
inline double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

struct Compiler::Impl {
  explicit Impl(CompilerOptions o)
      : file(find(o)), disk(file.path.empty() ? std::filesystem::path() : o.cache_dir, o.locks) {}

  static NvrtcFile find(const CompilerOptions& options) {
    if (options.backend == Backend::kHost) return {};
    NvrtcFile file = find_nvrtc();
    if (options.backend == Backend::kNvrtc && file.path.empty())
      throw std::runtime_error(file.why_not);
    file.identity += options.salt;
    return file;
  }
  /// Does NVRTC compile, or the host half stand in for it?
  bool device() const { return !file.path.empty() && !broken; }

  Compiled compile(const Key& key, std::string_view arch, Mode mode);
  void prepare(const std::vector<Key>& keys, std::string_view arch, Mode mode);
  std::optional<Code> code(const Key& key, std::string_view arch, Mode mode);

 private:
  struct Turn;
  struct Slot {  // one key, architecture and mode
    std::string name, address;
  };
  struct Known {
    Compiled compiled;
    bool told = false;  // where it came from was answered once; from then on it is memory
  };
  Slot slot(const KernelSpec& spec, const std::string& text, std::string_view arch, Mode mode);
  /// From memory or disk. `peek`: to know that it is there, not to answer for it.
  std::optional<Compiled> known(const Slot& slot, const std::string& text, bool peek = false);
  void remember(const Slot& slot, const Compiled& compiled, bool told);
  std::vector<const Key*> missing_of(const KernelSpec& spec, const std::vector<Key>& keys,
                                     std::string_view arch, Mode mode);
  bool is_known(const KernelSpec& spec, const std::string& text, std::string_view arch, Mode mode);
  void keep_code(const Slot& slot, Code code);
  std::optional<Code> stored_code(const Slot& slot, const std::string& text);
  /// `locked`: nobody else builds it meanwhile.
  Compiled build(const Key& key, const Slot& slot, std::string_view arch, Mode mode, bool locked);
  void build_program(const KernelSpec& spec, const std::vector<const Key*>& keys,
                     std::string_view arch, Mode mode, bool locked);
  NvrtcResult run(const KernelSpec& spec, const std::vector<Key>& keys, std::string_view arch,
                  Mode mode);
  /// Loads NVRTC at the first need; null (and the host half from then on) if that fails.
  const Nvrtc* library();
  /// What is told of a compilation by this compiler: with the cache behind it, and the damage
  /// found.
  Compiled built_here(const Slot& slot, Compiled compiled, bool kept);
  void note_damage(const Slot& slot);
  /// Is the object code there that the entry of a key holds or refers to?
  bool has_code(const CacheEntry& entry);

  const NvrtcFile file;
  const DiskCache disk;
  Addresses addresses{file};
  std::once_flag load_once;
  std::unique_ptr<Nvrtc> loaded;
  std::atomic<bool> broken{false};  // there, but it does not load

  std::mutex mutex;  // of all below
  std::condition_variable built;
  std::set<std::string> in_flight;
  std::unordered_map<std::string, Known> memory;
  std::unordered_map<std::string, Code> codes;  // by slot name
  std::set<std::string> damaged;                // slot names whose entry did not verify
  std::set<std::string> whole_programs;         // addresses of programs seen whole
};

}  // namespace warmgate::jit
