// One rank of one run: everything that the phases make and pass on. Members are in the order in
// which they come to life and die in reverse, so nothing outlives what it refers to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "harness/engine/context.h"
#include "harness/engine/memory/device_memory.h"
#include "harness/engine/memory/workspace.h"
#include "harness/engine/model.h"
#include "harness/engine/ops/op_clock.h"
#include "harness/engine/phases/step_log.h"

namespace warmgate::engine {

struct Session {
  Session(const scenario::Resolved& config_in, trace::EventWriter& writer,
          Collectives& collectives_in, jit::Compiler& compiler_in)
      : config(config_in), recorder(writer), collectives(collectives_in), compiler(compiler_in) {}

  const scenario::Resolved& config;
  Recorder recorder;
  Collectives& collectives;
  jit::Compiler& compiler;
  StepLog steps{recorder};

  // Made in bootstrap.
  std::optional<DeviceMemory> memory;
  std::optional<Workspace> workspace;
  std::optional<KernelSet> kernels;
  std::optional<OpClock> clock;  // where WARMGATE_OP_TIMES asks for it
  std::optional<Context> context;
  std::unique_ptr<EngineModel> model;
  std::int64_t device_free_at_start = 0;  // bytes; 0 where the device does not say
  std::int64_t requested_bytes = 0;       // ceil(total * gpu_memory_utilization)

  std::int64_t profile_peak_bytes = 0;  // made in profile
  KvPlan plan;                          // made in kv
  std::int64_t all_blocks = 0;          // free right after the slab was made; 0 before
  bool spoils = false;                  // dummy steps find spoiled contents
  std::size_t spoiled = 0;              // dummy steps that did

  bool seam_is(const char* name, const char* value) const { return config.seams.at(name) == value; }
  bool drafts() const { return config.drafter.active(); }
  /// N; 0 without a drafter.
  std::int64_t speculative() const { return drafts() ? config.drafter.num_speculative_tokens : 0; }
  /// All ranks are here. Throws CollectiveError.
  void barrier();
  /// One forward step, told to the step log.
  void step(const Batch& batch, bool with_draft);
};

}  // namespace warmgate::engine
