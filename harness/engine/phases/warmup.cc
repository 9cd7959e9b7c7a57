// The order and the reach of warmup's steps. Origin: vLLM at d40c3e3c00,
// model_executor/warmup/kernel_warmup.py and v1/worker/gpu/warmup.py, for the runner that drafters
// need (V2). What those do for other models or other devices is left out.
#include <fmt/format.h>

#include <algorithm>

#include "harness/engine/jit/probe.h"
#include "harness/engine/phases/dummy_batch.h"
#include "harness/engine/phases/fault.h"
#include "harness/engine/phases/phases.h"
#include "harness/engine/phases/state.h"

namespace warmgate::engine::phases {

namespace {

struct StepLimits {
  std::int64_t tokens, requests, length, speculative;  // B, S, L, N
};
StepLimits limits_of(const Session& s) {
  const auto& limits = s.config.limits;
  return {limits.max_num_batched_tokens, limits.max_num_seqs, limits.max_model_len,
          s.speculative()};
}

/// A request of warmup: a row of the block tables that gives its blocks back whatever happens.
class ScratchRequest {
 public:
  ScratchRequest(Session& session, std::int64_t row) : s_(session), row_(row) {}
  ~ScratchRequest() {
    // warmup.scratch_blocks = kept: the request of a warmup step stays where it is.
    if (s_.seam_is("warmup.scratch_blocks", "returned")) s_.model->release_request(row_);
  }
  ScratchRequest(const ScratchRequest&) = delete;
  ScratchRequest& operator=(const ScratchRequest&) = delete;

  /// Blocks for `query` more tokens and what the drafter looks ahead. False if the pool is short.
  bool grow(std::int64_t query) {
    const std::int64_t tokens =
        std::min(computed_ + query + s_.speculative(), s_.config.limits.max_model_len);
    return s_.model->grow_request(row_, tokens);
  }
  BatchRequest part(std::int64_t query) {
    const BatchRequest out{row_, computed_, query};
    computed_ += query;
    return out;
  }
  std::int64_t computed() const { return computed_; }

 private:
  Session& s_;
  std::int64_t row_, computed_ = 0;
};

std::string short_of_blocks(const Session& s) {
  return fmt::format("too few KV blocks: {} free", s.model->free_blocks());
}

void step(Session& s, std::vector<BatchRequest> requests, bool dummy = false) {
  s.step({std::move(requests), dummy}, s.drafts());
}

/// A real prefill of 2 tokens, then 1 decode token beside a prefill of 15. "" or why it was
/// skipped.
std::string mixed_step(Session& s) {
  constexpr std::int64_t kPrompt = 2, kPrefill = 15;
  const StepLimits limits = limits_of(s);
  if (limits.requests < 2) return "needs two requests, max_num_seqs is 1";
  if (limits.tokens < 1 + kPrefill)
    return fmt::format("needs {} tokens a step, max_num_batched_tokens is {}", 1 + kPrefill,
                       limits.tokens);
  if (limits.length < kPrefill)
    return fmt::format("needs {} positions, max_model_len is {}", kPrefill, limits.length);
  ScratchRequest decoding(s, 0), prefilling(s, 1);
  if (!decoding.grow(kPrompt + 1) || !prefilling.grow(kPrefill)) return short_of_blocks(s);
  step(s, {decoding.part(kPrompt)});
  step(s, {decoding.part(1), prefilling.part(kPrefill)});
  return {};
}

/// The scheduler-shaped steps: a prompt of N+2 tokens, then up to five decodes, the first of one
/// token, those after a draft of 1+N.
std::string scheduled_steps(Session& s) {
  constexpr int kDecodes = 5;
  const StepLimits limits = limits_of(s);
  ScratchRequest request(s, 0);
  const std::int64_t prompt = std::min({limits.speculative + 2, limits.tokens, limits.length});
  if (!request.grow(prompt)) return short_of_blocks(s);
  step(s, {request.part(prompt)});
  for (int i = 0; i < kDecodes; ++i) {
    const std::int64_t query = std::min(
        {i == 0 ? 1 : 1 + limits.speculative, limits.tokens, limits.length - request.computed()});
    // The context is full, or the pool: what ran is what this configuration can run.
    if (query < 1 || !request.grow(query)) break;
    step(s, {request.part(query)});
  }
  return {};
}

std::string autotune(Session& s) {
  const StepLimits limits = limits_of(s);
  if (s.seam_is("warmup.autotune_batch", "uniform_uncapped")) {
    // Equal decodes, as many as the tokens give, however many requests a step may have.
    Batch batch;
    batch.dummy = true;
    const std::int64_t query = std::min(1 + limits.speculative, limits.tokens);
    for (std::int64_t r = 0; r < limits.tokens / query; ++r)
      batch.requests.push_back({r, 0, query});
    s.step(batch, s.drafts());
    return {};
  }
  s.step(even_batch(limits.tokens, limits.requests, limits.length), s.drafts());
  return {};
}

std::string covering(Session& s) {
  for (const Batch& batch : s.model->covering_batches()) s.step(batch, s.drafts());
  return {};
}

struct Stage {
  const char* name;
  std::string (*run)(Session&);
};

}  // namespace

void warmup(Session& s) {
  std::vector<Stage> stages = {{"mixed_step", mixed_step},
                               {"autotune_step", autotune},
                               {"scheduled_steps", scheduled_steps}};
  if (s.seam_is("warmup.prefill_reach", "covering")) stages.push_back({"covering_steps", covering});
  for (const Stage& stage : stages) s.recorder.stage(stage.name, "requested");
  try {
    s.kernels->warmup();
  } catch (const std::runtime_error& error) {
    throw CompileError(error.what());
  }
  if (s.config.probe_keys) probe_keys(*s.kernels, s.recorder);
  tell_state(s, "before warmup");
  SpoiledContents spoiled(s);
  spoiled.begin();
  for (const Stage& stage : stages) {
    const std::string skipped = stage.run(s);
    if (skipped.empty()) {
      s.recorder.stage(stage.name, "done");
    } else {
      s.recorder.skip(stage.name, skipped, true);
    }
  }
  spoiled.end();
  tell_state(s, "after warmup");
  if (s.seam_is("workspace.lock", "after_warmup")) s.workspace->lock();
  s.recorder.counter("workspace_bytes", static_cast<double>(s.workspace->total_bytes()));
}

}  // namespace warmgate::engine::phases
