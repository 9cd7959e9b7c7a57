#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "harness/engine/phases/phases.h"

namespace warmgate::engine::phases {

void bootstrap(Session& s) {
  const auto& limits = s.config.limits;
  if (s.config.parallel.tp != s.collectives.world())
    throw std::runtime_error(fmt::format("tensor parallelism {} over {} ranks",
                                         s.config.parallel.tp, s.collectives.world()));
  const double utilization = limits.gpu_memory_utilization;
  if (!(utilization > 0 && utilization <= 1))
    throw std::runtime_error(
        fmt::format("gpu_memory_utilization {}: above 0 and at most 1", utilization));
  s.device_free_at_start = device_named(s.config.device).free_bytes().value_or(0);
  s.memory.emplace(limits.device_memory_bytes, s.recorder, device_named(s.config.device));
  // Origin: vLLM at d40c3e3c00, v1/worker/utils.py request_memory.
  s.requested_bytes = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(limits.device_memory_bytes) * utilization));
  trace::Line told("limits");
  told.num("max_num_batched_tokens", limits.max_num_batched_tokens);
  told.num("max_num_seqs", limits.max_num_seqs).num("max_model_len", limits.max_model_len);
  s.recorder.send(told);
  s.workspace.emplace(*s.memory, s.recorder);
  s.kernels.emplace(s.config, s.recorder, s.compiler);
  s.context.emplace(
      Context{s.config, s.recorder, *s.memory, *s.workspace, s.collectives, *s.kernels});
  if (std::getenv("WARMGATE_OP_TIMES") != nullptr) s.context->clock = &s.clock.emplace();
  s.model = std::make_unique<EngineModel>(*s.context);
  s.barrier();
}

}  // namespace warmgate::engine::phases
