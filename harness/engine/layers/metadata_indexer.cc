#include "harness/engine/layers/metadata.h"
#include "harness/engine/memory/workspace_plan.h"
#include "harness/engine/ops/indexer.h"
#include "harness/engine/ops/metadata_lists.h"

namespace warmgate::engine {

IndexerMetadata::IndexerMetadata(Buffers buffers, const Dims& dims, std::size_t group,
                                 std::string_view arch)
    : dims_(dims), group_(group), flattens_(ops::flattens_queries(arch, dims.indexer_threshold())) {
  context_lens_ = flattens_
                      ? buffers.make("indexer.context_lens", DType::kI32, {dims.max_tokens, 1})
                      : buffers.make("indexer.context_lens", DType::kI32,
                                     {dims.max_seqs, dims.indexer_threshold()});
  schedule = buffers.make("indexer.schedule", DType::kI32, {ops::sm_count(arch) + 1, 2});
  if (flattens_) {
    expanded_table_ = buffers.make("indexer.expanded_block_table", DType::kI32,
                                   {dims.max_tokens, ceil_div(dims.max_model_len, 256)});
  }
}

void IndexerMetadata::build(Executor& exec, const StepHost& host, const KvCache& cache,
                            const InputBuffers& inputs, const SwaMetadata& window,
                            Activations& step) {
  const LayerRef ref{-1, "c4a", "target"};
  split = split_batch(host.batch, dims_.indexer_threshold(), !flattens_);
  max_compressed = host.max_seq_len / 4;
  columns = host.shape_seq_len / 4;
  decode_table = flattens_ ? expanded_table_ : cache.table(group_);
  context_lens = context_lens_;
  if (split.decodes > 0) {
    const std::int64_t rows = flattens_ ? split.decode_tokens : split.decodes;
    execute(exec, ref,
            ops::DecodeContexts{{"prepare_uniform_decode", rows, inputs.seq_lens,
                                 cache.table(group_), context_lens_, expanded_table_},
                                inputs.positions,
                                window.token_to_req,
                                split.decode_tokens,
                                cache.tables().block_tokens(group_) / 4});
    execute(exec, ref,
            ops::ScoringSchedule{
                {"paged_mqa_logits_metadata", schedule.rows(), context_lens_, {}, schedule, {}},
                split.decode_tokens});
  }
  chunks.clear();
  key_start = key_end = {};
  if (split.prefills == 0) return;
  const auto first = static_cast<std::size_t>(split.decodes);
  const auto count = static_cast<std::size_t>(split.prefills);
  std::vector<std::int32_t> queries(count);
  for (std::size_t i = 0; i < count; ++i) {
    queries[i] = static_cast<std::int32_t>(host.batch[first + i].query);
  }
  plan_indexer_chunks(std::span(host.seq_lens).subspan(first, count), queries, 4,
                      dims_.indexer_gather_rows(), kMaxLogitsBytes, chunks);
  key_start = step.make(DType::kI32, {split.prefill_tokens});
  key_end = step.make(DType::kI32, {split.prefill_tokens});
  for (const IndexerChunk& chunk : chunks) {
    BuildChunkInputs in;
    in.query_slice_start = chunk.slice_start;
    in.query_slice_stop = chunk.slice_stop;
    in.compress_ratio = 4;  // of the indexer cache's own spec, whatever the layer list says
    // int32 rows: 16-byte aligned where the first request's index is a multiple of four.
    in.seq_lens_aligned = (split.decodes + chunk.begin) % 4 == 0;
    const std::int64_t request = split.decodes + chunk.begin, requests = chunk.end - chunk.begin;
    const std::int64_t token = chunk.token_begin + chunk.slice_start;
    const ops::BuildChunkArguments arguments{key_start.slice(token, chunk.queries()),
                                             key_end.slice(token, chunk.queries()),
                                             step.make(DType::kI32, {chunk.keys}),
                                             inputs.query_start.slice(request, requests + 1),
                                             inputs.seq_lens.slice(request, requests),
                                             chunk.slice_start,
                                             chunk.slice_stop,
                                             requests};
    exec.context().kernels.launch_build_chunk(in, ref, chunk.queries(), &arguments);
  }
}

std::int64_t IndexerMetadata::queries_a_row() const {
  return flattens_ || split.decodes == 0 ? 1 : split.decode_tokens / split.decodes;
}

}  // namespace warmgate::engine
