#include <algorithm>

#include "harness/engine/layers/metadata.h"
#include "harness/engine/ops/metadata_lists.h"

namespace warmgate::engine {

std::int64_t c128a_width(const Dims& dims, std::int64_t max_seq_len, bool packed) {
  const std::int64_t stride = dims.c128a_stride();
  if (!packed) return stride;
  return std::min(std::max<std::int64_t>(pow2_at_least(max_seq_len / 128), 128), stride);
}

SparseMetadata::SparseMetadata(Buffers buffers, const Dims& dims, std::size_t group, Kind kind)
    : dims_(dims), group_(group), kind_(kind) {
  slots = buffers.make("sparse_mla.compressed_slot_mapping", DType::kI64, {dims.max_tokens});
  host_slots_.assign(static_cast<std::size_t>(dims.max_tokens), -1);
  if (kind != Kind::kC128a) return;
  const std::int64_t stride = dims.c128a_stride();
  full_decode_ =
      buffers.make("sparse_mla.c128a_global_decode_buffer", DType::kI32, {dims.max_tokens, stride});
  full_prefill_ =
      buffers.make("sparse_mla.c128a_prefill_buffer", DType::kI32, {dims.max_tokens, stride});
  decode_lens = buffers.make("sparse_mla.c128a_decode_lens_buffer", DType::kI32, {dims.max_tokens});
}

namespace {

// Rows of a buffer at another width: packed from the buffer's start, as the kernel writes them.
Tensor at_width(const Tensor& full, std::int64_t width) {
  return make_tensor(full.dtype, {full.rows(), width}, full.address);
}

}  // namespace

void SparseMetadata::build(Executor& exec, const StepHost& host, const Split& split,
                           const KvCache& cache, const InputBuffers& inputs,
                           const SwaMetadata& window, bool packed) {
  const LayerRef ref{-1, to_string(kind_), "target"};
  // The whole buffer is -1 first, so that what an earlier step left behind cannot be used.
  for (std::int64_t i = host.tokens; i < dirty_; ++i) host_slots_[static_cast<std::size_t>(i)] = -1;
  dirty_ = host.tokens;
  const std::int64_t ratio = ratio_of(kind_);
  for (std::size_t r = 0; r < host.batch.size(); ++r) {
    const BatchRequest& request = host.batch[r];
    const auto out = std::span(host_slots_)
                         .subspan(static_cast<std::size_t>(host.query_start[r]),
                                  static_cast<std::size_t>(request.query));
    if (host.dummy || request.request == kPadding) {
      std::fill(out.begin(), out.end(), -1);
    } else {
      fill_compressed_slots(cache.tables().row(group_, request.request),
                            cache.tables().block_tokens(group_), ratio, request.computed, out);
    }
  }
  const std::int64_t block_rows = cache.tables().block_tokens(group_) / ratio;
  execute(exec, ref,
          ops::CompressedSlots{{"compressed_slot_mapping",
                                host.tokens,
                                inputs.positions,
                                cache.table(group_),
                                slots,
                                {}},
                               window.token_to_req,
                               ratio,
                               block_rows});
  if (kind_ != Kind::kC128a) return;
  width = c128a_width(dims_, host.shape_seq_len, packed);
  decode_indices = at_width(full_decode_, width);
  prefill_indices = at_width(full_prefill_, width);
  const auto lists = [&](std::int64_t first, std::int64_t count, const Tensor& indices,
                         const Tensor& lens) {
    execute(exec, ref,
            ops::C128Lists{{"build_c128a_topk_metadata", count, inputs.positions,
                            cache.table(group_), indices, lens},
                           window.token_to_req,
                           window.is_valid,
                           first,
                           block_rows});
  };
  if (split.decode_tokens > 0) lists(0, split.decode_tokens, decode_indices, decode_lens);
  if (split.prefill_tokens > 0)
    lists(split.decode_tokens, split.prefill_tokens, prefill_indices, {});
}

}  // namespace warmgate::engine
