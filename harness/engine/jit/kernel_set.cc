#include "harness/engine/jit/kernel_set.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <unordered_map>

#include "harness/engine/jit/dispatch.h"
#include "harness/engine/jit/kernel_domain.h"
#include "harness/engine/jit/trace_dispatch.h"

namespace warmgate::engine {
namespace {

std::string stage_of(std::string_view kernel) { return "metadata_kernels/" + std::string(kernel); }

/// What the engine knows of one key.
struct Entry {
  jit::Key key;
  std::string text, signature;
  bool compiled = false;
  std::uint64_t function = 0;  // where the device loads object code
};

std::uint64_t mix(std::uint64_t hash, std::int64_t value) {
  return (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15u;
}
struct KeyHash {
  std::size_t operator()(const ComputePrefillKey& k) const { return mix(1, k.block_size); }
  std::size_t operator()(const BuildChunkKey& k) const {
    return mix(
        mix(static_cast<std::uint64_t>(k.query_slice_start) * 16 +
                static_cast<std::uint64_t>(k.query_slice_stop) * 4 + (k.seq_lens_aligned ? 1 : 0),
            k.compress_ratio),
        k.dcp_rank * 4096 + k.dcp_world * 64 + k.dcp_interleave);
  }
  std::size_t operator()(const CombineKey& k) const {
    const std::int64_t flags =
        k.aligned[0] * 8 + k.aligned[1] * 4 + k.aligned[2] * 2 + k.aligned[3];
    return mix(mix(mix(static_cast<std::uint64_t>(k.compress_ratio), k.top_k), k.window_size),
               flags);
  }
};

/// Keys of one kernel that were seen, found by what dispatch() gave.
template <typename CompileKey>
class Entries {
 public:
  Entry& at(const CompileKey& key) {
    const auto it = entries_.find(key);
    if (it != entries_.end()) return it->second;
    Entry entry{to_key(key), {}, signature_of(key)};
    entry.text = entry.key.text();
    return entries_.emplace(key, std::move(entry)).first->second;
  }

 private:
  std::unordered_map<CompileKey, Entry, KeyHash> entries_;
};

template <typename CompileKey>
std::vector<jit::Key> to_keys(const std::vector<CompileKey>& keys) {
  std::vector<jit::Key> out;
  for (const CompileKey& key : keys) out.push_back(to_key(key));
  return out;
}

std::vector<std::string> texts(const std::vector<jit::Key>& keys) {
  std::vector<std::string> out;
  for (const jit::Key& key : keys) out.push_back(key.text());
  return out;
}

/// That of the device, else the first of the configuration.
std::string own_architecture(const scenario::Resolved& config) {
  std::string out = device_named(config.device).architecture();
  if (!out.empty()) return out;
  return config.architectures.empty() ? "sm_90a" : config.architectures.front();
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

struct KernelSet::Impl {
  const scenario::Resolved& config;
  Recorder& recorder;
  jit::Compiler& compiler;
  const Device& device;
  std::string arch;
  jit::Mode mode;
  Entries<ComputePrefillKey> compute_prefill;
  Entries<BuildChunkKey> build_chunk;
  Entries<CombineKey> combine;

  /// Compiles and says so. The result's log is empty if all went well.
  jit::Compiled compile(Entry& entry) {
    jit::Compiled result = compiler.compile(entry.key, arch, mode);
    entry.compiled = result.ok;
    trace::Line line("compile");
    line.str("kernel", entry.key.kernel).str("key", entry.text).str("arch", arch);
    line.str("source", jit::to_string(result.source)).real("ms", result.ms);
    line.str("status", result.ok ? "ok" : "failed").str("log", result.log);
    line.str("backend", result.backend).str("phase", recorder.phase());
    line.str("cache", jit::to_string(result.cached));
    if (result.rebuilt) line.flag("rebuilt", true);
    recorder.send(line);
    return result;
  }

  /// One stage of warmup. "" if all went well, else what went wrong with which key.
  template <typename CompileKey>
  std::string warm(const std::vector<CompileKey>& keys, Entries<CompileKey>& entries) {
    compiler.prepare(to_keys(keys), arch, mode);
    for (const CompileKey& key : keys) {
      Entry& entry = entries.at(key);
      const jit::Compiled result = compile(entry);
      if (!result.ok) return entry.text + ": " + first_line(result.log);
    }
    return {};
  }

  std::string warm_kernel(std::string_view kernel) {
    if (kernel == jit::kComputePrefillMetadata)
      return warm(warmup_compute_prefill(config), compute_prefill);
    if (kernel == jit::kBuildPrefillChunkMetadata)
      return warm(warmup_build_chunk(config), build_chunk);
    return warm(warmup_combine(config), combine);
  }

  template <typename Arguments>
  void launch(Entry& entry, const LayerRef& layer, std::int64_t rows, const Arguments* arguments) {
    if (!entry.compiled) {
      const jit::Compiled result = compile(entry);
      if (!result.ok)
        throw std::runtime_error("compiling " + entry.text + " at launch: " + result.log);
    }
    recorder.launch(entry.key.kernel, entry.text, entry.signature, layer, rows);
    if (!device.executes()) return;
    if (arguments == nullptr) throw std::logic_error(entry.key.kernel + " without arguments");
    if (entry.function == 0)
      entry.function = ops::load_kernel(entry.key, compiler, arch, mode, device);
    ops::run(ops::JitKernel{entry.key, entry.function}, *arguments, device);
    device.wait(entry.key.kernel.c_str());
  }
};

namespace {

constexpr std::string_view kKernels[] = {
    jit::kComputePrefillMetadata, jit::kBuildPrefillChunkMetadata, jit::kCombineTopkSwaIndices};

}  // namespace

jit::CompilerOptions cache_as_seamed(jit::CompilerOptions options,
                                     const scenario::Resolved& config) {
  const std::string& seam = config.seams.at("jit.cache");
  if (seam == "unlocked") options.locks = jit::CacheLocks::kNone;
  // What a start has to itself is no part of what it compiles, and keeps the next from finding it.
  if (seam == "per_start")
    options.salt =
        fmt::format("{}.{}", getpid(), std::chrono::steady_clock::now().time_since_epoch().count());
  return options;
}

KernelSet::KernelSet(const scenario::Resolved& config, Recorder& recorder, jit::Compiler& compiler)
    : impl_(std::make_unique<Impl>(Impl{
          config,
          recorder,
          compiler,
          device_named(config.device),
          own_architecture(config),
          config.seams.at("jit.compiler") == "lenient" ? jit::Mode::kLenient : jit::Mode::kStrict,
          {},
          {},
          {}})) {}
KernelSet::~KernelSet() = default;

void KernelSet::warmup() {
  Recorder& recorder = impl_->recorder;
  for (const std::string_view kernel : kKernels) {
    recorder.stage(stage_of(kernel), "requested");
    // Both lists before anything is compiled: a failure must not hide what would have come next.
    recorder.send(
        trace::Line("asked").str("kernel", kernel).strings("keys", texts(warmup_keys(kernel))));
    recorder.send(
        trace::Line("domain").str("kernel", kernel).strings("keys", texts(reachable_keys(kernel))));
  }
  // All at once, side by side; what follows finds its code made, and says of each key what came of
  // it.
  std::vector<jit::Key> all;
  for (const std::string_view kernel : kKernels) {
    for (jit::Key& key : warmup_keys(kernel)) all.push_back(std::move(key));
  }
  impl_->compiler.prepare(all, impl_->arch, impl_->mode);
  std::string failure;
  for (const std::string_view kernel : kKernels) {
    if (failure.empty()) {
      failure = impl_->warm_kernel(kernel);
      recorder.stage(stage_of(kernel), failure.empty() ? "done" : "failed");
      if (failure.empty()) continue;
      if (impl_->config.seams.at("warmup.on_error") == "raise") {
        throw std::runtime_error("metadata kernel warmup: " + failure);
      }
    }
    // One handler around all three compiles: what comes after the failure is not attempted.
    recorder.skip(stage_of(kernel), "Skipping sparse MLA Triton warmup. (modelled line) " + failure,
                  false);
  }
}

std::vector<jit::Key> KernelSet::reachable_keys(std::string_view kernel) const {
  const KernelDomain domain(impl_->config);
  if (kernel == jit::kComputePrefillMetadata) return to_keys(reachable_compute_prefill(domain));
  if (kernel == jit::kBuildPrefillChunkMetadata) return to_keys(reachable_build_chunk(domain));
  if (kernel == jit::kCombineTopkSwaIndices) return to_keys(reachable_combine(domain));
  throw std::invalid_argument("no kernel " + std::string(kernel));
}

std::vector<jit::Key> KernelSet::warmup_keys(std::string_view kernel) const {
  const scenario::Resolved& config = impl_->config;
  if (kernel == jit::kComputePrefillMetadata) return to_keys(warmup_compute_prefill(config));
  if (kernel == jit::kBuildPrefillChunkMetadata) return to_keys(warmup_build_chunk(config));
  if (kernel == jit::kCombineTopkSwaIndices) return to_keys(warmup_combine(config));
  throw std::invalid_argument("no kernel " + std::string(kernel));
}

jit::HostCheck KernelSet::probe(const jit::Key& key) {
  Impl& impl = *impl_;
  std::uint64_t function = 0;
  if (impl.device.gpu() != nullptr) {
    // A kernel that never ends would take the device with it.
    const jit::HostCheck host = jit::check_on_host(key);
    if (host.fault == "endless") return host;
    const jit::Compiled compiled = impl.compiler.compile(key, impl.arch, impl.mode);
    if (!compiled.ok) return host;  // there is nothing to launch
    function = ops::load_kernel(key, impl.compiler, impl.arch, impl.mode, impl.device);
  }
  return ops::probe(ops::JitKernel{key, function}, impl.device);
}

void KernelSet::launch_compute_prefill(const ComputePrefillInputs& inputs, const LayerRef& layer,
                                       std::int64_t rows,
                                       const ops::ComputePrefillArguments* arguments) {
  impl_->launch(impl_->compute_prefill.at(DispatchComputePrefill()(StructReader(inputs))), layer,
                rows, arguments);
}
void KernelSet::launch_build_chunk(const BuildChunkInputs& inputs, const LayerRef& layer,
                                   std::int64_t rows, const ops::BuildChunkArguments* arguments) {
  impl_->launch(impl_->build_chunk.at(DispatchBuildChunk()(StructReader(inputs))), layer, rows,
                arguments);
}
void KernelSet::launch_combine(const CombineInputs& inputs, const LayerRef& layer,
                               std::int64_t rows, const ops::CombineArguments* arguments) {
  impl_->launch(impl_->combine.at(DispatchCombine()(StructReader(inputs))), layer, rows, arguments);
}

}  // namespace warmgate::engine
