#include "harness/engine/layers/metadata.h"

#include "harness/engine/memory/workspace_plan.h"

namespace warmgate::engine {

MetadataBuilders::MetadataBuilders(DeviceMemory& memory, const Dims& dims, const KvCache& cache,
                                   Role role, const std::vector<std::size_t>& window_groups,
                                   std::optional<std::size_t> full_group, std::string_view arch)
    : dims_(dims), role_(role) {
  const Buffers buffers(memory, role == Role::kTarget ? "metadata" : "draft_metadata");
  for (const std::size_t group : window_groups) swa_.emplace_back(buffers, dims, group, role);
  step_.cache = &cache;
  if (role == Role::kDraft || !full_group) return;
  if (dims.has(Kind::kC4a)) {
    c4_.emplace(buffers, dims, *full_group, Kind::kC4a);
    indexer_.emplace(buffers, dims, *full_group, arch);
  }
  if (dims.has(Kind::kC128a)) c128_.emplace(buffers, dims, *full_group, Kind::kC128a);
}

std::int64_t MetadataBuilders::lazy_bytes() const {
  if (role_ != Role::kDraft || !dims_.parallel_drafting) return 0;
  const std::int64_t list = dims_.max_tokens * SwaMetadata::noncausal_width(dims_) * 4;
  return static_cast<std::int64_t>(swa_.size()) * round_up(list, DeviceMemory::kRounding);
}

const StepMetadata& MetadataBuilders::build(Executor& exec, const StepHost& host,
                                            const KvCache& cache, const InputBuffers& inputs,
                                            Activations& step, bool noncausal) {
  step_.host = &host;
  step_.cache = &cache;
  step_.inputs = &inputs;
  step_.tiles_planned = {};
  for (auto& chunks : step_.chunks) chunks.clear();
  step_.split = noncausal ? Split{host.requests, host.tokens, 0, 0}
                          : split_batch(host.batch, dims_.decode_threshold(), false);
  for (SwaMetadata& swa : swa_) {
    if (noncausal) {
      swa.build_noncausal(exec, host, cache, inputs);
    } else {
      swa.build(exec, host, step_.split, cache, inputs, step);
    }
    step_.swa.at(swa.group()) = &swa;
  }
  const bool packed = exec.context().seam_is("c128a.width", "packed");
  if (c4_) c4_->build(exec, host, step_.split, cache, inputs, swa_.front(), packed);
  if (c128_) c128_->build(exec, host, step_.split, cache, inputs, swa_.front(), packed);
  if (indexer_) indexer_->build(exec, host, cache, inputs, swa_.front(), step);
  step_.c4 = c4_ ? &*c4_ : nullptr;
  step_.c128 = c128_ ? &*c128_ : nullptr;
  step_.indexer = indexer_ ? &*indexer_ : nullptr;
  if (step_.split.prefills > 0) plan_prefills(host);
  return step_;
}

void MetadataBuilders::plan_prefills(const StepHost& host) {
  const auto first = static_cast<std::size_t>(step_.split.decodes);
  const auto count = static_cast<std::size_t>(step_.split.prefills);
  std::vector<std::int32_t> queries(count);
  for (std::size_t i = 0; i < count; ++i) {
    queries[i] = static_cast<std::int32_t>(host.batch[first + i].query);
  }
  for (const Kind kind : {Kind::kSwaOnly, Kind::kC4a, Kind::kC128a}) {
    const bool here = role_ == Role::kTarget ? dims_.has(kind) : kind == Kind::kSwaOnly;
    if (!here) continue;
    plan_prefill_chunks(std::span(host.seq_lens).subspan(first, count),
                        std::span(host.gather_lens).subspan(first, count), queries, ratio_of(kind),
                        kPrefillChunkRequests * prefill_rows(dims_, kind),
                        step_.chunks[static_cast<std::size_t>(kind)]);
  }
}

}  // namespace warmgate::engine
