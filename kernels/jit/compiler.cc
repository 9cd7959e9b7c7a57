#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>

#include "kernels/jit/jit.h"
#include "kernels/jit/kernel_table.h"

namespace warmgate::jit {
namespace {

double ms_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

Compiled compile_on_host(const Key& key, Mode mode) {
  Compiled out;
  out.backend = "host";
  if (mode == Mode::kLenient) {
    try {
      constants_of(key, key.kernel);
      out.ok =
          true;  // a lenient compiler accepts what does not divide by a visible zero, and what does
    } catch (const std::runtime_error& error) {
      out.log = error.what();
    }
    return out;
  }
  const HostCheck check = check_on_host(key);
  out.ok = check.ok;
  if (!check.ok) {
    out.log = check.file.empty()
                  ? check.fault
                  : check.file + "(" + std::to_string(check.line) + "): " + check.fault;
    out.log += ": " + check.message;
  }
  return out;
}

}  // namespace

struct Compiler::Impl {
  CompilerOptions options;
  std::mutex mutex;
  std::map<std::string, Compiled> memory;
};

Compiler::Compiler(CompilerOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
}
Compiler::~Compiler() = default;

Compiled Compiler::compile(const Key& key, std::string_view arch, Mode mode) {
  const std::string address =
      std::string(arch) + (mode == Mode::kStrict ? " strict " : " lenient ") + key.text();
  const std::lock_guard lock(impl_->mutex);
  if (const auto it = impl_->memory.find(address); it != impl_->memory.end()) {
    Compiled out = it->second;
    out.source = Source::kMemory;
    out.ms = 0;
    return out;
  }
  const auto begin = std::chrono::steady_clock::now();
  Compiled out = compile_on_host(key, mode);
  out.ms = ms_since(begin);
  return impl_->memory[address] = out;
}

std::vector<Compiled> Compiler::compile_all(const std::vector<Key>& keys, std::string_view arch) {
  std::vector<Compiled> out;
  for (const Key& key : keys) out.push_back(compile(key, arch, Mode::kStrict));
  return out;
}

std::string_view Compiler::backend() const { return "host"; }

const NvrtcInfo& nvrtc() {
  static const NvrtcInfo info;
  return info;
}

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
