// Metadata builders: persistent buffers allocated when the KV cache is made (after profiling, so
// profiling never sees them), filled every step. Host integers are the source; device tensors get
// copies of them, and what kernels make of those.
// Origin: vLLM at d40c3e3c00, v1/attention/backends/mla/{sparse_swa,indexer,compressor_utils}.py
// and models/deepseek_v4/sparse_mla.py.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/engine/layers/batch_split.h"
#include "harness/engine/layers/dims.h"
#include "harness/engine/layers/indexer_plan.h"
#include "harness/engine/layers/prefill_plan.h"
#include "harness/engine/layers/step_host.h"
#include "harness/engine/memory/activations.h"
#include "harness/engine/memory/kv_cache.h"
#include "harness/engine/ops/execute.h"

namespace warmgate::engine {

/// Allocates what lasts and remembers whose it is.
class Buffers {
 public:
  Buffers(DeviceMemory& memory, std::string_view pool) : memory_(&memory), pool_(pool) {}
  Tensor make(std::string_view owner, DType dtype, Shape shape);

 private:
  DeviceMemory* memory_;
  std::string_view pool_;
};

/// Input buffers that the runner fills before metadata is built.
struct InputBuffers {
  Tensor ids, positions;         // [B] i64
  Tensor query_start, seq_lens;  // [S+1], [S] i32
  static InputBuffers make(Buffers buffers, const Dims& dims, std::string_view owner);
};

/// Window attention of one cache group. Buffers are sized by B.
class SwaMetadata {
 public:
  SwaMetadata(Buffers buffers, const Dims& dims, std::size_t group, Role role);
  /// Causal: one key list a token.
  void build(Executor& execute, const StepHost& host, const Split& split, const KvCache& cache,
             const InputBuffers& inputs, Activations& step);
  /// A draft block: all its tokens share one list of up to W+N keys. The index buffer is made on
  /// the first such build, hence after profiling.
  void build_noncausal(Executor& execute, const StepHost& host, const KvCache& cache,
                       const InputBuffers& inputs);

  std::size_t group() const { return group_; }
  /// What decode attention reads: [B,1,width] of the last build.
  const Tensor& decode_indices() const { return noncausal_last_ ? noncausal_ : decode_indices_; }
  const Tensor& noncausal() const { return noncausal_; }
  /// Columns of the list of a draft block: the window and the block, as kernels take them.
  static std::int64_t noncausal_width(const Dims& dims) {
    return round_up(dims.window + dims.speculative, 128);
  }
  Tensor token_to_req, decode_lens, prefill_indices, prefill_lens, is_valid;
  Tensor gather_lens;  // [prefills] i32, of this step

 private:
  void find_requests(Executor& execute, const StepHost& host, const KvCache& cache,
                     const InputBuffers& inputs);
  Buffers buffers_;
  const Dims& dims_;
  std::size_t group_;
  LayerRef ref_;
  Tensor decode_indices_, noncausal_;
  bool noncausal_last_ = false;
};

/// Compressed attention of one ratio: slots of finished windows, and for 128 the index tensors.
class SparseMetadata {
 public:
  SparseMetadata(Buffers buffers, const Dims& dims, std::size_t group, Kind kind);
  /// `window`: of the same step, built before.
  void build(Executor& execute, const StepHost& host, const Split& split, const KvCache& cache,
             const InputBuffers& inputs, const SwaMetadata& window, bool packed);
  std::size_t group() const { return group_; }
  /// Slots of compressed entries, host side; -1 where no window ends.
  std::span<const std::int64_t> host_slots() const { return host_slots_; }
  Tensor slots;  // [B] i64
  /// C128A only: columns in use this step, and the views at that width.
  std::int64_t width = 0;
  Tensor decode_indices, decode_lens, prefill_indices;

 private:
  const Dims& dims_;
  std::size_t group_;
  Kind kind_;
  Tensor full_decode_, full_prefill_;  // [B, stride] i32
  std::vector<std::int64_t> host_slots_;
  std::int64_t dirty_ = 0;
};

/// min(max(2^k >= max_seq_len/128, 128), stride) if packed, else the stride.
std::int64_t c128a_width(const Dims& dims, std::int64_t max_seq_len, bool packed);

/// The indexer of c4a layers.
class IndexerMetadata {
 public:
  IndexerMetadata(Buffers buffers, const Dims& dims, std::size_t group, std::string_view arch);
  void build(Executor& execute, const StepHost& host, const KvCache& cache,
             const InputBuffers& inputs, const SwaMetadata& window, Activations& step);
  /// Queries that share a row of decode_table.
  std::int64_t queries_a_row() const;
  bool flattens() const { return flattens_; }
  Split split;
  std::vector<IndexerChunk> chunks;
  std::int64_t max_compressed = 0;  // longest context of the step, in compressed units
  std::int64_t columns = 0;         // that logits are made for, at least max_compressed
  Tensor context_lens, schedule, decode_table;
  Tensor key_start, key_end;  // [prefill tokens] i32, of this step

 private:
  const Dims& dims_;
  std::size_t group_;
  bool flattens_;
  Tensor context_lens_, expanded_table_;
};

/// What a layer's forward reads. Null in profiling.
struct StepMetadata {
  const StepHost* host = nullptr;
  const KvCache* cache = nullptr;
  const InputBuffers* inputs = nullptr;
  Split split;                              // of attention
  std::array<const SwaMetadata*, 8> swa{};  // by cache group
  const SparseMetadata* c4 = nullptr;
  const SparseMetadata* c128 = nullptr;
  const IndexerMetadata* indexer = nullptr;
  std::array<std::vector<PrefillChunk>, kNumKinds> chunks;
  mutable std::array<bool, kNumKinds> tiles_planned{};

  const SparseMetadata* sparse(Kind kind) const { return kind == Kind::kC4a ? c4 : c128; }
};

/// One set of builders: the target's over all groups, or a draft's own over its window groups.
class MetadataBuilders {
 public:
  MetadataBuilders(DeviceMemory& memory, const Dims& dims, const KvCache& cache, Role role,
                   const std::vector<std::size_t>& window_groups,
                   std::optional<std::size_t> full_group, std::string_view arch);
  /// Plans chunks and fills buffers. `noncausal`: a draft block.
  const StepMetadata& build(Executor& execute, const StepHost& host, const KvCache& cache,
                            const InputBuffers& inputs, Activations& step, bool noncausal);
  const StepMetadata& current() const { return step_; }
  const std::vector<SwaMetadata>& windows() const { return swa_; }
  /// What steps take for good on their first use of it, in bytes.
  std::int64_t lazy_bytes() const;

 private:
  void plan_prefills(const StepHost& host);
  const Dims& dims_;
  Role role_;
  std::vector<SwaMetadata> swa_;
  std::optional<SparseMetadata> c4_, c128_;
  std::optional<IndexerMetadata> indexer_;
  StepMetadata step_;
};

}  // namespace warmgate::engine
