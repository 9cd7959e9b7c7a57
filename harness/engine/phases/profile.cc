#include <algorithm>

#include "harness/engine/phases/phases.h"

namespace warmgate::engine::phases {

void profile(Session& s) {
  const auto& limits = s.config.limits;
  // Origin: vLLM at d40c3e3c00, v1/worker/gpu/model_runner.py profile_run: B tokens over min(B,S)
  // requests.
  s.model->profile_forward(limits.max_num_batched_tokens,
                           std::min(limits.max_num_batched_tokens, limits.max_num_seqs));
  s.profile_peak_bytes = s.memory->peak_bytes();
  s.recorder.counter("profile_peak_bytes", static_cast<double>(s.profile_peak_bytes));
}

}  // namespace warmgate::engine::phases
