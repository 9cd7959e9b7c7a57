// The dispatch functions of the metadata kernels: inputs of a launch → what the kernel is compiled
// for. Each is a template over how it reads its inputs, so that warmup traces the same expressions
// that serving runs. Formulas: vLLM at d40c3e3c00, dispatch() of the three kernels.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "harness/engine/jit/kernel_set.h"

namespace warmgate::engine {

/// Classes of an integer argument, by what its value lets the compiler assume.
enum class IntClass : std::uint8_t { kAny, kOne, kDiv16 };
inline IntClass int_class(std::int64_t value) {
  return value == 1 ? IntClass::kOne : value % 16 == 0 ? IntClass::kDiv16 : IntClass::kAny;
}

/// Smallest power of two that is >= value; 1 for values below 1.
inline std::int64_t next_pow2(std::int64_t value) {
  return value <= 1 ? 1
                    : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

inline constexpr std::int64_t kChunkBlockSize = 1024;

struct ComputePrefillKey {
  std::int64_t block_size = 1;
  bool operator==(const ComputePrefillKey&) const = default;
};
struct BuildChunkKey {
  IntClass query_slice_start = IntClass::kDiv16, query_slice_stop = IntClass::kDiv16;
  std::int64_t dcp_rank = 0, dcp_world = 1, dcp_interleave = 1;  // no decode context parallelism
  std::int64_t block_size = kChunkBlockSize;
  std::int64_t compress_ratio = 0;
  bool seq_lens_aligned = true;
  bool operator==(const BuildChunkKey&) const = default;
};
struct CombineKey {
  std::int64_t compress_ratio = 1, top_k = 0, padded_top_k = 1, window_size = 0;
  std::array<bool, 4> aligned{};  // topk, query_start_loc, seq_lens, gather_lens
  bool operator==(const CombineKey&) const = default;
};

struct DispatchComputePrefill {
  template <typename Read>
  ComputePrefillKey operator()(Read&& in) const {
    return {next_pow2(in(&ComputePrefillInputs::num_prefills))};
  }
};
struct DispatchBuildChunk {
  template <typename Read>
  BuildChunkKey operator()(Read&& in) const {
    BuildChunkKey key;
    key.query_slice_start = int_class(in(&BuildChunkInputs::query_slice_start));
    key.query_slice_stop = int_class(in(&BuildChunkInputs::query_slice_stop));
    key.compress_ratio = in(&BuildChunkInputs::compress_ratio);
    key.seq_lens_aligned = in(&BuildChunkInputs::seq_lens_aligned);
    return key;
  }
};
struct DispatchCombine {
  template <typename Read>
  CombineKey operator()(Read&& in) const {
    return {in(&CombineInputs::compress_ratio),
            in(&CombineInputs::topk),
            next_pow2(in(&CombineInputs::index_width)),
            in(&CombineInputs::window),
            {in(&CombineInputs::topk_aligned), in(&CombineInputs::query_start_loc_aligned),
             in(&CombineInputs::seq_lens_aligned), in(&CombineInputs::gather_lens_aligned)}};
  }
};

jit::Key to_key(const ComputePrefillKey& key);
jit::Key to_key(const BuildChunkKey& key);
jit::Key to_key(const CombineKey& key);

/// Types of a launch's arguments as the compiler sees them: element type, @alignment in bytes,
/// class of specialised integers. One text a key, the same in warmup and serve.
std::string signature_of(const ComputePrefillKey& key);
std::string signature_of(const BuildChunkKey& key);
std::string signature_of(const CombineKey& key);

}  // namespace warmgate::engine
