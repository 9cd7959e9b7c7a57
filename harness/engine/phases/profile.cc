#include <algorithm>

#include "harness/engine/phases/phases.h"

namespace warmgate::engine::phases {

void profile(Session& s) {
  const auto& limits = s.config.limits;
  // Origin: vLLM at d40c3e3c00, v1/worker/gpu/model_runner.py profile_run: B tokens over min(B,S)
  // requests. No step can have more tokens than all requests at full length.
  std::int64_t tokens = limits.max_num_batched_tokens;
  if (s.seam_is("profile.tokens", "servable") &&
      tokens / limits.max_num_seqs >= limits.max_model_len)
    tokens = std::min(tokens, limits.max_num_seqs * limits.max_model_len);
  const std::int64_t requests = std::min(tokens, limits.max_num_seqs);
  StepShape shape;
  shape.dummy = true;
  shape.rows = tokens;
  shape.prefills = requests;
  shape.longest = (tokens + requests - 1) / requests;
  shape.draft_rows = s.model->draft_rows(requests);
  s.steps.add(shape);
  s.model->profile_forward(tokens, requests);
  s.profile_peak_bytes = s.memory->peak_bytes();
  s.recorder.counter("profile_peak_bytes", static_cast<double>(s.profile_peak_bytes));
}

}  // namespace warmgate::engine::phases
