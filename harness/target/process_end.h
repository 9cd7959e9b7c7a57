// What the harness says of a worker's end.
#pragma once

#include "harness/target/target.h"
#include "harness/target/worker.h"

namespace warmgate::target {

/// The `process_end` event (its fields: see run_target()). `trace` and what the worker wrote are
/// searched for evidence that memory was out; `kernel_killed`: the kernel's own counter says so.
trace::Event process_end(const Worker& worker, const TargetSpec& spec, const trace::Trace& trace,
                         bool kernel_killed);

}  // namespace warmgate::target
