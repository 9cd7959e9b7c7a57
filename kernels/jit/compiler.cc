#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
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
namespace {

constexpr std::size_t kMaxLogBytes = 4096;

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// What is wrong with the key's form; "" if nothing is.
std::string key_problem(const Key& key) {
  if (find_kernel(key.kernel) == nullptr) return "key " + key.text() + ": no such kernel";
  try {
    constants_of(key, key.kernel);
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

Compiled refused(std::string_view backend, std::string log) {
  Compiled out;
  out.backend = backend;
  out.log = std::move(log);
  return out;
}

/// The host half in the compiler's place: strictly, the body has to run; leniently, anything goes
/// that has the form of a key.
Compiled compile_on_host(const Key& key, Mode mode) {
  Compiled out;
  out.backend = "host";
  if (mode == Mode::kLenient) {
    out.ok = true;
    return out;
  }
  const HostCheck check = check_on_host(key);
  out.ok = check.ok;
  if (check.ok) return out;
  out.log = check.fault + ": " + check.message;
  if (check.line > 0) out.log = check.file + "(" + std::to_string(check.line) + "): " + out.log;
  return out;
}

Compiled from_entry(const CacheEntry& entry) {
  Compiled out;
  out.ok = entry.ok;
  out.source = Source::kDisk;
  out.log = entry.log;
  out.backend = "nvrtc";
  out.bytes = entry.bytes;
  return out;
}

}  // namespace

struct Compiler::Impl {
  explicit Impl(CompilerOptions o)
      : file(find(o.backend)), disk(file.path.empty() ? std::filesystem::path() : o.cache_dir) {}

  static NvrtcFile find(Backend backend) {
    if (backend == Backend::kHost) return {};
    NvrtcFile file = find_nvrtc();
    if (backend == Backend::kNvrtc && file.path.empty()) throw std::runtime_error(file.why_not);
    return file;
  }
  /// Does NVRTC compile, or the host half stand in for it?
  bool device() const { return !file.path.empty() && !broken; }

  Compiled compile(const Key& key, std::string_view arch, Mode mode);
  std::vector<Compiled> compile_all(const std::vector<Key>& keys, std::string_view arch);

 private:
  struct Turn;
  struct Slot {  // one key, architecture and flavour
    std::string memory, address;
  };
  Slot slot(const KernelSpec& spec, const std::string& text, std::string_view arch,
            Flavour flavour) {
    std::string name = std::string(arch) + char('0' + static_cast<int>(flavour)) + text;
    return {std::move(name), device() ? addresses.of(spec, text, flavour, arch) : ""};
  }
  /// From memory or disk; remembers what disk gave.
  std::optional<Compiled> known(const Slot& slot, const std::string& text);
  void remember(const Slot& slot, const Compiled& compiled);
  Compiled build(const KernelSpec& spec, const Key& key, std::string_view arch, Mode mode);
  void build_program(const KernelSpec& spec, const std::vector<const Key*>& keys,
                     std::string_view arch, std::unordered_map<std::string, Compiled>& results);
  /// Loads NVRTC at the first need; null (and the host half from then on) if that fails.
  const Nvrtc* library();

  const NvrtcFile file;
  const DiskCache disk;
  Addresses addresses{file};
  std::once_flag load_once;
  std::unique_ptr<Nvrtc> loaded;
  std::atomic<bool> broken{false};  // there, but it does not load

  std::mutex mutex;  // of all below
  std::condition_variable built;
  std::set<std::string> in_flight;
  std::unordered_map<std::string, Compiled> memory;
};

/// The right of one thread to build one key.
struct Compiler::Impl::Turn {
  Turn(Impl& i, std::string n) : impl(i), name(std::move(n)) {
    std::unique_lock lock(impl.mutex);
    impl.built.wait(lock, [&] { return impl.in_flight.count(name) == 0; });
    impl.in_flight.insert(name);
  }
  ~Turn() {
    const std::lock_guard lock(impl.mutex);
    impl.in_flight.erase(name);
    impl.built.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  Impl& impl;
  const std::string name;
};

const Nvrtc* Compiler::Impl::library() {
  std::call_once(load_once, [&] {
    try {
      loaded = std::make_unique<Nvrtc>(file.path);
    } catch (const std::runtime_error&) {
      broken = true;
    }
  });
  return loaded.get();
}

std::optional<Compiled> Compiler::Impl::known(const Slot& slot, const std::string& text) {
  {
    const std::lock_guard lock(mutex);
    if (const auto it = memory.find(slot.memory); it != memory.end()) {
      Compiled out = it->second;
      out.source = Source::kMemory;
      out.ms = 0;
      return out;
    }
  }
  const auto begin = Clock::now();
  const auto entry = disk.load(slot.address, text);
  if (!entry) return std::nullopt;
  Compiled out = from_entry(*entry);
  out.ms = ms_since(begin);
  remember(slot, out);
  return out;
}

void Compiler::Impl::remember(const Slot& slot, const Compiled& compiled) {
  const std::lock_guard lock(mutex);
  memory[slot.memory] = compiled;
}

Compiled Compiler::Impl::build(const KernelSpec& spec, const Key& key, std::string_view arch,
                               Mode mode) {
  const Nvrtc* nvrtc_library = library();
  if (nvrtc_library == nullptr) return compile_on_host(key, mode);
  const NvrtcResult result = nvrtc_library->compile(
      device_program(spec, {key}, nvrtc_options(flavour_of(mode), arch, file)));
  Compiled out;
  out.ok = result.ok;
  out.backend = "nvrtc";
  out.log = result.log.substr(0, kMaxLogBytes);
  out.bytes = static_cast<std::int64_t>(result.cubin.size());
  const std::string text = key.text();
  disk.store(addresses.of(spec, text, flavour_of(mode), arch), text,
             {out.ok, out.log, out.bytes, result.cubin});
  return out;
}

Compiled Compiler::Impl::compile(const Key& key, std::string_view arch, Mode mode) {
  if (std::string problem = key_problem(key); !problem.empty()) {
    return refused(device() ? "nvrtc" : "host", std::move(problem));
  }
  const KernelSpec& spec = *find_kernel(key.kernel);
  const std::string text = key.text();
  const Slot wanted = slot(spec, text, arch, flavour_of(mode));
  if (auto found = known(wanted, text)) return *found;
  if (mode == Mode::kLenient) {  // what compiles strictly compiles leniently, to the same code
    const auto strict = known(slot(spec, text, arch, Flavour::kStrict), text);
    if (strict && strict->ok) return *strict;
  }
  const auto begin = Clock::now();
  const Turn turn(*this, wanted.memory);             // one compilation a key in this process …
  const DiskCache::Lock lock(disk, wanted.address);  // … and on this machine
  if (auto found = known(wanted, text)) return *found;
  Compiled out = device() ? build(spec, key, arch, mode) : compile_on_host(key, mode);
  out.ms = ms_since(begin);
  remember(wanted, out);
  return out;
}

/// One program with all of `keys`; where that fails, halves, down to single keys.
void Compiler::Impl::build_program(const KernelSpec& spec, const std::vector<const Key*>& keys,
                                   std::string_view arch,
                                   std::unordered_map<std::string, Compiled>& results) {
  if (keys.empty()) return;
  const Nvrtc* nvrtc_library = keys.size() == 1 ? nullptr : library();
  if (nvrtc_library == nullptr) {
    for (const Key* key : keys) results[key->text()] = compile(*key, arch, Mode::kStrict);
    return;
  }
  std::vector<Key> copies;
  for (const Key* key : keys) copies.push_back(*key);
  const auto begin = Clock::now();
  const NvrtcResult result = nvrtc_library->compile(
      device_program(spec, copies, nvrtc_options(Flavour::kVerdict, arch, file)));
  if (!result.ok) {
    const auto half = keys.begin() + static_cast<std::ptrdiff_t>(keys.size() / 2);
    build_program(spec, {keys.begin(), half}, arch, results);
    build_program(spec, {half, keys.end()}, arch, results);
    return;
  }
  Compiled share;  // of time and code, so that sums over keys are right
  share.ok = true;
  share.backend = "nvrtc";
  share.log = result.log.substr(0, kMaxLogBytes);
  share.ms = ms_since(begin) / static_cast<double>(keys.size());
  share.bytes = static_cast<std::int64_t>(result.cubin.size() / keys.size());
  for (const Key* key : keys) {
    const std::string text = key->text();
    const Slot verdict = slot(spec, text, arch, Flavour::kVerdict);
    disk.store(verdict.address, text, {true, share.log, share.bytes, {}});
    remember(verdict, share);
    results[text] = share;
  }
}

std::vector<Compiled> Compiler::Impl::compile_all(const std::vector<Key>& keys,
                                                  std::string_view arch) {
  std::unordered_map<std::string, Compiled> results;
  const auto recall = [&](const KernelSpec& spec, const std::string& text) {
    for (const Flavour flavour : {Flavour::kVerdict, Flavour::kStrict}) {
      if (auto found = known(slot(spec, text, arch, flavour), text)) {
        results[text] = std::move(*found);
        return true;
      }
    }
    return false;
  };
  for (const KernelSpec& spec : kernels()) {
    std::vector<const Key*> missing;
    for (const Key& key : keys) {
      if (key.kernel != spec.name) continue;
      const std::string text = key.text();
      if (results.count(text) > 0) continue;
      if (!device() || !key_problem(key).empty()) {
        results[text] = compile(key, arch, Mode::kStrict);
      } else if (!recall(spec, text)) {
        results[text] = {};  // so that a repeated key is built once
        missing.push_back(&key);
      }
    }
    if (missing.empty()) continue;
    const DiskCache::Lock lock(
        disk, addresses.of(spec, "every key of the kernel", Flavour::kVerdict, arch));
    std::erase_if(missing, [&](const Key* key) { return recall(spec, key->text()); });
    // The compiler's words about a key that does not run are wanted too, but would spoil the
    // program.
    const auto bad = std::stable_partition(missing.begin(), missing.end(),
                                           [](const Key* key) { return check_on_host(*key).ok; });
    build_program(spec, {missing.begin(), bad}, arch, results);
    for (auto it = bad; it != missing.end(); ++it) {
      results[(*it)->text()] = compile(**it, arch, Mode::kStrict);
    }
  }
  std::vector<Compiled> out;
  for (const Key& key : keys) {
    const auto it = results.find(key.text());
    out.push_back(it != results.end() ? it->second : compile(key, arch, Mode::kStrict));
  }
  return out;
}

Compiler::Compiler(CompilerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Compiler::~Compiler() = default;

Compiled Compiler::compile(const Key& key, std::string_view arch, Mode mode) {
  return impl_->compile(key, arch, mode);
}
std::vector<Compiled> Compiler::compile_all(const std::vector<Key>& keys, std::string_view arch) {
  return impl_->compile_all(keys, arch);
}
std::string_view Compiler::backend() const { return impl_->device() ? "nvrtc" : "host"; }

std::filesystem::path default_cache_dir() {
  for (const auto& [variable, below] : {std::pair{"WARMGATE_KERNEL_CACHE", ""},
                                        {"XDG_CACHE_HOME", "warmgate/kernels"},
                                        {"HOME", ".cache/warmgate/kernels"}}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') {
      return *below == '\0' ? std::filesystem::path(value) : std::filesystem::path(value) / below;
    }
  }
  return {};
}

}  // namespace warmgate::jit
