#include "harness/engine/layers/attention.h"
#include "harness/engine/memory/workspace_plan.h"
#include "harness/engine/ops/sparse_attention.h"

namespace warmgate::engine {

namespace {

// profile.topk_bound = buffer_required: the buffer is asserted before the kind is looked at
// (vllm-project/vllm#50298), so that a layer which indexes nothing needs one all the same.
std::int64_t topk_of_required_buffer(const AttentionCall& call) {
  require(call.context(), call.layer, Resource::kTopkIndicesBuffer);
  return call.layer.kind == Kind::kSwaOnly ? 0 : call.layer.topk_buffer.last();
}

// profile.topk_bound = kind_aware (vllm-project/vllm#50693).
std::int64_t topk_by_kind(const AttentionCall& call) {
  if (call.layer.kind == Kind::kSwaOnly) return 0;
  require(call.context(), call.layer, Resource::kTopkIndicesBuffer);
  return call.layer.topk_buffer.last();
}

}  // namespace

std::int64_t profiled_topk(const AttentionCall& call) {
  const Context& context = call.context();
  const std::int64_t buffer_width = context.seam_is("profile.topk_bound", "buffer_required")
                                        ? topk_of_required_buffer(call)
                                        : topk_by_kind(call);
  if (context.seam_is("workspace.reservation", "topk_buffer_width")) return buffer_width;
  return reserved_topk(call.dims, call.layer.kind, false);
}

void profile_attention(const AttentionCall& call, const Tensor& out) {
  const std::int64_t topk = profiled_topk(call);
  if (call.context().seam_is("workspace.reservation", "none")) {
    execute(call.exec, call.layer.ref, ops::ZeroFill{out});
    return;
  }
  const auto views = attention_views(call.dims, kPrefillChunkRequests,
                                     prefill_rows(call.dims, call.layer.kind), topk);
  call.context().workspace.request(call.layer.lane, "attention", call.layer.ref,
                                   {views[0], views[1], views[2]});
  execute(call.exec, call.layer.ref, ops::ZeroFill{out});
}

}  // namespace warmgate::engine
