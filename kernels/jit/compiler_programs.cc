// Keys compiled together, one program a kernel, and the object code of keys for a device to load.
#include <algorithm>
#include <exception>
#include <sstream>
#include <thread>

#include "kernels/jit/compiler_impl.h"
#include "kernels/jit/host_backend.h"

namespace warmgate::jit {
namespace {

// What the entry of a key says that was compiled together with others: where the object code lies,
// and what it calls this key's function.
constexpr std::string_view kProgram = "program ";
std::string program_title(std::size_t keys) {
  return "program of " + std::to_string(keys) + " keys";
}
struct Reference {
  std::string address, function;
  std::size_t keys = 0;  // of the whole program
};
std::string to_text(const Reference& r) {
  return std::string(kProgram) + r.address + " " + std::to_string(r.keys) + " " + r.function;
}
/// Nothing where the entry holds its code itself.
std::optional<Reference> reference_of(const CacheEntry& entry) {
  if (entry.object.rfind(kProgram, 0) != 0) return std::nullopt;
  std::istringstream text(entry.object.substr(kProgram.size()));
  Reference out;
  text >> out.address >> out.keys >> out.function;
  return out;
}

}  // namespace

/// One program with all of `keys`; where that fails, halves. What fails alone is left to compile().
void Compiler::Impl::build_program(const KernelSpec& spec, const std::vector<const Key*>& keys,
                                   std::string_view arch, Mode mode, bool locked) {
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
    build_program(spec, {keys.begin(), half}, arch, mode, locked);
    build_program(spec, {half, keys.end()}, arch, mode, locked);
    return;
  }
  // The object code lies once, in an entry of the program's own; keys name it.
  const std::string program = addresses.of(spec, texts, mode, arch);
  const bool kept =
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
    const bool stored =
        disk.store(own.address, text,
                   {true, share.log, share.bytes, to_text({program, code.function, keys.size()})});
    keep_code(own, code);
    remember(own, built_here(own, share, kept && stored && locked), false);
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
    bool locked = false;
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
      programs.push_back({&spec, {at(i), at(i + 1)}, locks.back()->held()});
    }
  }
  std::atomic<std::size_t> next{0};
  std::exception_ptr trouble;
  const auto work = [&] {
    for (std::size_t i = next++; i < programs.size(); i = next++) {
      try {
        build_program(*programs[i].spec, programs[i].keys, arch, mode, programs[i].locked);
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

bool Compiler::Impl::has_code(const CacheEntry& entry) {
  const auto reference = reference_of(entry);
  if (!reference) return !entry.object.empty();
  {
    const std::lock_guard lock(mutex);
    if (whole_programs.count(reference->address) != 0) return true;
  }
  const auto program = disk.load(reference->address, program_title(reference->keys));
  if (!program || !program->ok || reference->function.empty()) return false;
  const std::lock_guard lock(mutex);
  whole_programs.insert(reference->address);
  return true;
}

std::optional<Code> Compiler::Impl::stored_code(const Slot& slot, const std::string& text) {
  const auto own = disk.load(slot.address, text, true);
  if (!own || !own->ok || own->object.empty()) return std::nullopt;
  const auto reference = reference_of(*own);
  if (!reference) return Code{slot.name, std::make_shared<const std::string>(own->object), ""};
  Code out{reference->address, nullptr, reference->function};
  {
    const std::lock_guard lock(mutex);
    for (const auto& [name, known] : codes) {
      if (known.program == out.program) out.cubin = known.cubin;
    }
  }
  if (out.cubin == nullptr) {
    const auto program = disk.load(out.program, program_title(reference->keys), true);
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
  // It compiled, and its code went since: somebody emptied or damaged the cache meanwhile.
  if (!is_known(spec, text, arch, mode)) return std::nullopt;
  const Slot wanted = slot(spec, text, arch, mode);
  const DiskCache::Lock turn(disk, wanted.address);
  if (!build(key, wanted, arch, mode, turn.held()).ok) return std::nullopt;
  const std::lock_guard lock(mutex);
  const auto it = codes.find(wanted.name);
  return it == codes.end() ? std::nullopt : std::optional<Code>(it->second);
}

}  // namespace warmgate::jit
