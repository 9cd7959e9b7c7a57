#include "harness/engine/layers/metadata.h"
#include "harness/engine/ops/metadata_lists.h"

namespace warmgate::engine {

Tensor Buffers::make(std::string_view owner, DType dtype, Shape shape) {
  Tensor t = make_tensor(dtype, shape);
  t.address = memory_->alloc(pool_, t.bytes, owner, Lifetime::kPersistent).address;
  return t;
}

InputBuffers InputBuffers::make(Buffers buffers, const Dims& d, std::string_view owner) {
  InputBuffers out;
  out.ids = buffers.make(owner, DType::kI64, {d.max_tokens});
  out.positions = buffers.make(owner, DType::kI64, {d.max_tokens});
  out.query_start = buffers.make(owner, DType::kI32, {d.max_seqs + 1});
  out.seq_lens = buffers.make(owner, DType::kI32, {d.max_seqs});
  return out;
}

SwaMetadata::SwaMetadata(Buffers buffers, const Dims& dims, std::size_t group, Role role)
    : buffers_(buffers), dims_(dims), group_(group), ref_{-1, "", to_string(role)} {
  const std::int64_t b = dims.max_tokens, w = dims.window;
  token_to_req = buffers.make("swa.token_to_req_indices", DType::kI32, {b});
  decode_indices_ = buffers.make("swa.decode_swa_indices", DType::kI32, {b, 1, w});
  prefill_indices = buffers.make("swa.prefill_swa_indices", DType::kI32, {b, 1, w});
  decode_lens = buffers.make("swa.decode_swa_lens", DType::kI32, {b});
  prefill_lens = buffers.make("swa.prefill_swa_lens", DType::kI32, {b});
  is_valid = buffers.make("swa.is_valid_token", DType::kBool, {b});
}

void SwaMetadata::find_requests(Executor& exec, const StepHost& host, const KvCache& cache,
                                const InputBuffers& inputs) {
  execute(exec, ref_,
          ops::TokenToReq{{"compute_token_to_req_and_valid",
                           host.tokens,
                           cache.slots(group_),
                           {},
                           token_to_req,
                           is_valid},
                          inputs.query_start,
                          host.requests});
}

void SwaMetadata::build(Executor& exec, const StepHost& host, const Split& split,
                        const KvCache& cache, const InputBuffers& inputs, Activations& step) {
  noncausal_last_ = false;
  gather_lens = {};
  find_requests(exec, host, cache, inputs);
  const auto lists = [&](std::int64_t first, std::int64_t count, const Tensor& indices,
                         const Tensor& lens) {
    execute(exec, ref_,
            ops::SwaLists{{"compute_swa_indices_and_lens", count, inputs.positions,
                           cache.table(group_), indices, lens},
                          token_to_req,
                          is_valid,
                          first,
                          cache.tables().block_tokens(group_),
                          dims_.window});
  };
  if (split.decode_tokens > 0) lists(0, split.decode_tokens, decode_indices_, decode_lens);
  if (split.prefills > 0) {
    lists(split.decode_tokens, split.prefill_tokens, prefill_indices, prefill_lens);
    gather_lens = step.make(DType::kI32, {split.prefills});
    const ops::ComputePrefillArguments arguments{gather_lens,     inputs.query_start,
                                                 inputs.seq_lens, split.prefills,
                                                 split.decodes,   dims_.window};
    exec.context().kernels.launch_compute_prefill({split.prefills}, ref_, split.prefills,
                                                  &arguments);
  }
}

void SwaMetadata::build_noncausal(Executor& exec, const StepHost& host, const KvCache& cache,
                                  const InputBuffers& inputs) {
  if (!noncausal_.present()) {
    noncausal_ = buffers_.make("swa.decode_swa_indices_noncausal", DType::kI32,
                               {dims_.max_tokens, 1, noncausal_width(dims_)});
  }
  noncausal_last_ = true;
  find_requests(exec, host, cache, inputs);
  execute(exec, ref_,
          ops::NoncausalLists{{"compute_dspark_noncausal_swa_indices", host.tokens,
                               inputs.positions, cache.table(group_), noncausal_, decode_lens},
                              token_to_req,
                              is_valid,
                              inputs.query_start,
                              inputs.seq_lens,
                              cache.tables().block_tokens(group_),
                              dims_.window});
}

}  // namespace warmgate::engine
