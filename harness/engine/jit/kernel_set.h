// The engine's run-time compiled metadata kernels: dispatch(inputs) → key, warmup, launch.
// Warmup traces its keys from the same dispatch functions that serving uses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/engine/ops/jit_launch.h"
#include "harness/engine/recorder.h"
#include "harness/scenario/resolved.h"
#include "kernels/jit/jit.h"

namespace warmgate::engine {

/// Inputs of ComputePrefillMetadata (runs once per step with prefills, per SWA group).
struct ComputePrefillInputs {
  std::int64_t num_prefills = 0;
};
/// Inputs of BuildPrefillChunkMetadata (once per indexer chunk).
struct BuildChunkInputs {
  std::int64_t query_slice_start = 0;  // token offset of the sub-chunk inside the chunk
  std::int64_t query_slice_stop = 0;
  std::int64_t compress_ratio = 4;  // of the indexer cache's spec
  bool seq_lens_aligned = true;     // 16-byte alignment of uncompressed_seq_lens[start:]
};
/// Inputs of CombineTopkSwaIndices (once per layer and prefill chunk).
struct CombineInputs {
  std::int64_t compress_ratio = 1;
  std::int64_t topk = 0;         // 0 swaonly, K c4a, index width c128a
  std::int64_t index_width = 0;  // columns of the index tensor passed in
  std::int64_t window = 128;
  bool topk_aligned = true, query_start_loc_aligned = true, seq_lens_aligned = true,
       gather_lens_aligned = true;
};

/// The compiler's options as seam jit.cache has them: with the cache's locks or without, and with
/// addresses that the next start finds again or not.
jit::CompilerOptions cache_as_seamed(jit::CompilerOptions options,
                                     const scenario::Resolved& config);

class KernelSet {
 public:
  KernelSet(const scenario::Resolved& config, Recorder& recorder, jit::Compiler& compiler);
  ~KernelSet();

  /// Warmup of the three kernels in order, one architecture, per seams warmup.* and jit.compiler.
  /// Sends `stage` (metadata_kernels/<kernel>), `compile`, `domain` and, where an error is
  /// swallowed, `skip` for the stage and every later one. Throws std::runtime_error on a failed
  /// compile if warmup.on_error is raise.
  void warmup();
  /// Every key that dispatch can produce for this configuration, per kernel, de-duplicated in
  /// order.
  std::vector<jit::Key> reachable_keys(std::string_view kernel) const;
  /// The keys that warmup asks for, in order (before anything is compiled).
  std::vector<jit::Key> warmup_keys(std::string_view kernel) const;

  /// The key's kernel once, on boundary inputs and poisoned outputs, against the integer reference:
  /// its code where the device loads such, else its body on the host.
  jit::HostCheck probe(const jit::Key& key);

  /// Dispatches, compiles if the key was not warmed (a `compile` event), records the launch.
  /// 100 ns or less where the key was seen before. Throws std::runtime_error with the compiler's
  /// words if the key does not compile. On a device that executes, the kernel runs with
  /// `arguments`, which must be there.
  void launch_compute_prefill(const ComputePrefillInputs& inputs, const LayerRef& layer,
                              std::int64_t rows,
                              const ops::ComputePrefillArguments* arguments = nullptr);
  void launch_build_chunk(const BuildChunkInputs& inputs, const LayerRef& layer, std::int64_t rows,
                          const ops::BuildChunkArguments* arguments = nullptr);
  void launch_combine(const CombineInputs& inputs, const LayerRef& layer, std::int64_t rows,
                      const ops::CombineArguments* arguments = nullptr);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The dispatch functions, pure. Formulas: vLLM at d40c3e3c00, get_warmup_keys/dispatch of the
/// three.
jit::Key dispatch(const ComputePrefillInputs& inputs);
jit::Key dispatch(const BuildChunkInputs& inputs);
jit::Key dispatch(const CombineInputs& inputs);

}  // namespace warmgate::engine
