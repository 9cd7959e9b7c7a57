#include "kernels/jit/compiler_impl.h"
#include "kernels/jit/host_backend.h"

namespace warmgate::jit {
namespace {

constexpr std::size_t kMaxLogBytes = 4096;

Compiled from_entry(const CacheEntry& entry) {
  Compiled out;
  out.ok = entry.ok;
  out.source = Source::kDisk;
  out.log = entry.log;
  out.backend = "nvrtc";
  out.bytes = entry.bytes;
  out.cached = Cached::kKept;
  return out;
}

}  // namespace

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
  bool bad = false;
  const auto entry = disk.load(slot.address, text, true, &bad);
  // An entry is worth as much as the code it names.
  bad = bad || (entry && entry->ok && !has_code(*entry));
  if (bad) note_damage(slot);
  if (!entry || bad) return std::nullopt;
  Compiled out = from_entry(*entry);
  out.ms = ms_since(begin);
  remember(slot, out, !peek);
  return out;
}

void Compiler::Impl::remember(const Slot& slot, const Compiled& compiled, bool told) {
  const std::lock_guard lock(mutex);
  memory[slot.name] = {compiled, told};
}

void Compiler::Impl::note_damage(const Slot& slot) {
  const std::lock_guard lock(mutex);
  damaged.insert(slot.name);
}

Compiled Compiler::Impl::built_here(const Slot& slot, Compiled compiled, bool kept) {
  const std::lock_guard lock(mutex);
  compiled.cached = !device() || !disk.on() ? Cached::kOff
                    : kept                  ? Cached::kKept
                                            : Cached::kUnwritable;
  compiled.rebuilt = damaged.erase(slot.name) > 0;
  return compiled;
}

NvrtcResult Compiler::Impl::run(const KernelSpec& spec, const std::vector<Key>& keys,
                                std::string_view arch, Mode mode) {
  NvrtcResult result =
      library()->compile(device_program(spec, keys, nvrtc_options(mode, arch, file)));
  if (result.log.size() > kMaxLogBytes) result.log.resize(kMaxLogBytes);
  return result;
}

Compiled Compiler::Impl::build(const Key& key, const Slot& slot, std::string_view arch, Mode mode,
                               bool locked) {
  if (!device() || library() == nullptr) return built_here(slot, compile_on_host(key, mode), false);
  const NvrtcResult result = run(*find_kernel(key.kernel), {key}, arch, mode);
  Compiled out;
  out.ok = result.ok;
  out.backend = "nvrtc";
  out.log = result.log;
  out.bytes = static_cast<std::int64_t>(result.cubin.size());
  const bool stored =
      disk.store(slot.address, key.text(), {out.ok, out.log, out.bytes, result.cubin});
  if (out.ok)
    keep_code(slot,
              {slot.name, std::make_shared<std::string>(result.cubin), result.functions.at(0)});
  return built_here(slot, std::move(out), stored && locked);
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
  Compiled out = build(key, wanted, arch, mode, lock.held());
  out.ms = ms_since(begin);
  remember(wanted, out, true);
  return out;
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
