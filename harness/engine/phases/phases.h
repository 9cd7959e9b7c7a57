// The phases of a start, each a function over the session; engine.cc runs them in this order.
// Origin of the order: vLLM at d40c3e3c00, v1/engine/core.py and v1/worker/gpu_worker.py.
#pragma once

#include "harness/engine/phases/session.h"

namespace warmgate::engine::phases {

/// Device memory, workspace, kernels, model; all ranks meet.
void bootstrap(Session& session);
/// Weights of target and draft; `layer` events.
void load(Session& session);
/// The forward without attention metadata that finds how much memory serving will want.
void profile(Session& session);
/// Sizes the KV cache from what profiling left, agrees on it with all ranks, makes it.
void kv(Session& session);
/// Metadata kernels, then forward steps in the modelled order.
void warmup(Session& session);
/// Decode steps into graphs, largest first; on a device without graphs a declared skip.
void capture(Session& session);
/// All ranks meet; then `ready`.
void ready(Session& session);
/// The workload's requests through the scheduler.
void serve(Session& session);
/// Gives everything back and looks whether it all came back.
void shutdown(Session& session);

}  // namespace warmgate::engine::phases
