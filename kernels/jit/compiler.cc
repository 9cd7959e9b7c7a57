#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <unordered_map>

#include "kernels/jit/device_program.h"
#include "kernels/jit/disk_cache.h"
#include "kernels/jit/host_backend.h"
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

Compiled from_entry(const CacheEntry& entry) {
  Compiled out;
  out.ok = entry.ok;
  out.source = Source::kDisk;
  out.log = entry.log;
  out.backend = "nvrtc";
  out.bytes = entry.bytes;
  return out;
}

// What the entry of a key says that was compiled together with others: where the object code lies,
// and what it calls this key's function.
constexpr std::string_view kProgram = "program ";
std::string program_title(std::size_t keys) {
  return "program of " + std::to_string(keys) + " keys";
}
std::string program_reference(const std::string& address, std::size_t keys,
                              const std::string& function) {
  return std::string(kProgram) + address + " " + std::to_string(keys) + " " + function;
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
  Compiled build(const Key& key, const Slot& slot, std::string_view arch, Mode mode);
  void build_program(const KernelSpec& spec, const std::vector<const Key*>& keys,
                     std::string_view arch, Mode mode);
  NvrtcResult run(const KernelSpec& spec, const std::vector<Key>& keys, std::string_view arch,
                  Mode mode);
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
  std::unordered_map<std::string, Known> memory;
  std::unordered_map<std::string, Code> codes;  // by slot name
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

Compiler::Impl::Slot Compiler::Impl::slot(const KernelSpec& spec, const std::string& text,
                                          std::string_view arch, Mode mode) {
  std::string name(arch);
  name += mode == Mode::kStrict ? " strict " : " lenient ";
  return {name + text, device() ? addresses.of(spec, text, mode, arch) : ""};
}

std::optional<Compiled> Compiler::Impl::known(const Slot& slot, const std::string& text,
                                              bool peek) {
  {
    const std::lock_guard lock(mutex);
    if (const auto it = memory.find(slot.name); it != memory.end()) {
      Compiled out = it->second.compiled;
      if (it->second.told) {
        out.source = Source::kMemory;
        out.ms = 0;
      }
      it->second.told |= !peek;
      return out;
    }
  }
  const auto begin = Clock::now();
  const auto entry = disk.load(slot.address, text);
  if (!entry) return std::nullopt;
  Compiled out = from_entry(*entry);
  out.ms = ms_since(begin);
  remember(slot, out, !peek);
  return out;
}

void Compiler::Impl::remember(const Slot& slot, const Compiled& compiled, bool told) {
  const std::lock_guard lock(mutex);
  memory[slot.name] = {compiled, told};
}

NvrtcResult Compiler::Impl::run(const KernelSpec& spec, const std::vector<Key>& keys,
                                std::string_view arch, Mode mode) {
  NvrtcResult result =
      library()->compile(device_program(spec, keys, nvrtc_options(mode, arch, file)));
  if (result.log.size() > kMaxLogBytes) result.log.resize(kMaxLogBytes);
  return result;
}

Compiled Compiler::Impl::build(const Key& key, const Slot& slot, std::string_view arch, Mode mode) {
  if (library() == nullptr) return compile_on_host(key, mode);
  const NvrtcResult result = run(*find_kernel(key.kernel), {key}, arch, mode);
  Compiled out;
  out.ok = result.ok;
  out.backend = "nvrtc";
  out.log = result.log;
  out.bytes = static_cast<std::int64_t>(result.cubin.size());
  disk.store(slot.address, key.text(), {out.ok, out.log, out.bytes, result.cubin});
  if (out.ok)
    keep_code(slot,
              {slot.name, std::make_shared<std::string>(result.cubin), result.functions.at(0)});
  return out;
}

Compiled Compiler::Impl::compile(const Key& key, std::string_view arch, Mode mode) {
  if (const std::string problem = key_problem(key); !problem.empty()) {
    Compiled refused;
    refused.backend = device() ? "nvrtc" : "host";
    refused.log = problem;
    return refused;
  }
  const KernelSpec& spec = *find_kernel(key.kernel);
  const std::string text = key.text();
  const Slot wanted = slot(spec, text, arch, mode);
  if (auto found = known(wanted, text)) return *found;
  if (mode == Mode::kLenient) {  // what compiles strictly compiles leniently, to the same code
    const Slot strict = slot(spec, text, arch, Mode::kStrict);
    const auto peeked = known(strict, text, true);
    if (peeked && peeked->ok) return *known(strict, text);
  }
  const auto begin = Clock::now();
  const Turn turn(*this, wanted.name);               // one compilation a key in this process …
  const DiskCache::Lock lock(disk, wanted.address);  // … and on this machine
  if (auto found = known(wanted, text)) return *found;
  Compiled out = device() ? build(key, wanted, arch, mode) : compile_on_host(key, mode);
  out.ms = ms_since(begin);
  remember(wanted, out, true);
  return out;
}

/// One program with all of `keys`; where that fails, halves. What fails alone is left to compile().
void Compiler::Impl::build_program(const KernelSpec& spec, const std::vector<const Key*>& keys,
                                   std::string_view arch, Mode mode) {
  if (keys.size() < 2 || library() == nullptr) return;
  std::vector<Key> copies;
  std::string texts;
  for (const Key* key : keys) {
    copies.push_back(*key);
    texts += key->text() + "\n";
  }
  const auto begin = Clock::now();
  const NvrtcResult result = run(spec, copies, arch, mode);
  if (!result.ok) {
    const auto half = keys.begin() + static_cast<std::ptrdiff_t>(keys.size() / 2);
    build_program(spec, {keys.begin(), half}, arch, mode);
    build_program(spec, {half, keys.end()}, arch, mode);
    return;
  }
  // The object code lies once, in an entry of the program's own; keys name it.
  const std::string program = addresses.of(spec, texts, mode, arch);
  disk.store(program, program_title(keys.size()),
             {true, "", static_cast<std::int64_t>(result.cubin.size()), result.cubin});
  const auto cubin = std::make_shared<const std::string>(result.cubin);
  Compiled share;  // of time and code, so that sums over keys are right
  share.ok = true;
  share.backend = "nvrtc";
  share.log = result.log;
  share.ms = ms_since(begin) / static_cast<double>(keys.size());
  share.bytes = static_cast<std::int64_t>(result.cubin.size() / keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string text = keys[i]->text();
    const Slot own = slot(spec, text, arch, mode);
    const Code code{program, cubin, result.functions.at(i)};
    disk.store(
        own.address, text,
        {true, share.log, share.bytes, program_reference(program, keys.size(), code.function)});
    keep_code(own, code);
    remember(own, share, false);
  }
}

/// Keys of one kernel that no cache has and that can be compiled together.
std::vector<const Key*> Compiler::Impl::missing_of(const KernelSpec& spec,
                                                   const std::vector<Key>& keys,
                                                   std::string_view arch, Mode mode) {
  std::vector<const Key*> missing;
  std::set<std::string> seen;
  for (const Key& key : keys) {
    if (key.kernel != spec.name || !key_problem(key).empty()) continue;
    const std::string text = key.text();
    if (seen.insert(text).second && !is_known(spec, text, arch, mode)) missing.push_back(&key);
  }
  // A key that does not run would spoil the program; compile() gets the compiler's words on it.
  if (mode == Mode::kStrict)
    std::erase_if(missing, [](const Key* key) { return !check_on_host(*key).ok; });
  return missing;
}

bool Compiler::Impl::is_known(const KernelSpec& spec, const std::string& text,
                              std::string_view arch, Mode mode) {
  if (known(slot(spec, text, arch, mode), text, true)) return true;
  if (mode == Mode::kStrict) return false;
  const auto strict = known(slot(spec, text, arch, Mode::kStrict), text, true);
  return strict && strict->ok;
}

void Compiler::Impl::prepare(const std::vector<Key>& keys, std::string_view arch, Mode mode) {
  if (!device()) return;  // the host half gains nothing by it
  struct Program {
    const KernelSpec* spec = nullptr;
    std::vector<const Key*> keys;
  };
  std::vector<std::unique_ptr<DiskCache::Lock>> locks;
  std::vector<Program> programs;
  // A program costs 25 ms and each of its keys 10; NVRTC runs some four at a time side by side.
  constexpr std::size_t kFewest = 8;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  for (const KernelSpec& spec : kernels()) {
    std::vector<const Key*> missing = missing_of(spec, keys, arch, mode);
    if (missing.size() < 2) continue;
    locks.push_back(
        std::make_unique<DiskCache::Lock>(disk, addresses.of(spec, "every key", mode, arch)));
    std::erase_if(missing, [&](const Key* key) { return is_known(spec, key->text(), arch, mode); });
    const std::size_t pieces =
        std::clamp<std::size_t>(missing.size() / kFewest, 1, std::max<std::size_t>(1, cores / 3));
    for (std::size_t i = 0; i < pieces; ++i) {
      const auto at = [&](std::size_t n) {
        return missing.begin() + static_cast<std::ptrdiff_t>(missing.size() * n / pieces);
      };
      programs.push_back({&spec, {at(i), at(i + 1)}});
    }
  }
  std::atomic<std::size_t> next{0};
  std::exception_ptr trouble;
  const auto work = [&] {
    for (std::size_t i = next++; i < programs.size(); i = next++) {
      try {
        build_program(*programs[i].spec, programs[i].keys, arch, mode);
      } catch (...) {
        const std::lock_guard lock(mutex);
        trouble = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < std::min(cores, programs.size()); ++i) pool.emplace_back(work);
    work();
  }
  if (trouble) std::rethrow_exception(trouble);
}

void Compiler::Impl::keep_code(const Slot& slot, Code code) {
  const std::lock_guard lock(mutex);
  codes[slot.name] = std::move(code);
}

std::optional<Code> Compiler::Impl::stored_code(const Slot& slot, const std::string& text) {
  const auto own = disk.load(slot.address, text, true);
  if (!own || !own->ok) return std::nullopt;
  if (own->object.rfind(kProgram, 0) != 0)
    return Code{slot.name, std::make_shared<const std::string>(own->object), ""};
  std::istringstream reference(own->object.substr(kProgram.size()));
  Code out;
  std::size_t keys = 0;
  if (!(reference >> out.program >> keys >> out.function)) return std::nullopt;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [name, known] : codes) {
      if (known.program == out.program) out.cubin = known.cubin;
    }
  }
  if (out.cubin == nullptr) {
    const auto program = disk.load(out.program, program_title(keys), true);
    if (!program || !program->ok) return std::nullopt;
    out.cubin = std::make_shared<const std::string>(program->object);
  }
  return out;
}

std::optional<Code> Compiler::Impl::code(const Key& key, std::string_view arch, Mode mode) {
  if (!device() || !key_problem(key).empty()) return std::nullopt;
  const KernelSpec& spec = *find_kernel(key.kernel);
  const std::string text = key.text();
  // What compiles strictly compiles leniently, to the same code: it may lie there alone.
  for (const Mode at : {mode, Mode::kStrict}) {
    const Slot wanted = slot(spec, text, arch, at);
    {
      const std::lock_guard lock(mutex);
      if (const auto it = codes.find(wanted.name); it != codes.end()) return it->second;
    }
    if (auto found = stored_code(wanted, text)) {
      keep_code(wanted, *found);
      return found;
    }
  }
  return std::nullopt;
}

Compiler::Compiler(CompilerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Compiler::~Compiler() = default;

Compiled Compiler::compile(const Key& key, std::string_view arch, Mode mode) {
  return impl_->compile(key, arch, mode);
}

void Compiler::prepare(const std::vector<Key>& keys, std::string_view arch, Mode mode) {
  impl_->prepare(keys, arch, mode);
}

std::vector<Compiled> Compiler::compile_all(const std::vector<Key>& keys, std::string_view arch) {
  impl_->prepare(keys, arch, Mode::kStrict);
  std::vector<Compiled> out;
  for (const Key& key : keys) out.push_back(impl_->compile(key, arch, Mode::kStrict));
  return out;
}

std::optional<Code> Compiler::code(const Key& key, std::string_view arch, Mode mode) {
  return impl_->code(key, arch, mode);
}

std::string_view Compiler::backend() const { return impl_->device() ? "nvrtc" : "host"; }

}  // namespace warmgate::jit
