// probe_keys: true: every warmed key is launched once before anything is served.
#pragma once

#include "harness/engine/jit/kernel_set.h"
#include "harness/engine/recorder.h"

namespace warmgate::engine {

/// Runs the host body of each key that warmup asked for, on boundary inputs and poisoned outputs,
/// and compares with the independent reference (kernels/reference/metadata.h). Sends one `check`
/// {tensor: key text, kind: "probe", kernel, ok, fault, message, file, line} a key. What is broken
/// does not end the phase: the contract judges, also where a lenient compiler let the key pass.
/// Kernels run on the host here, on every device that this engine has; one whose kernels run
/// elsewhere must launch them there.
void probe_keys(const KernelSet& kernels, const Recorder& recorder);

}  // namespace warmgate::engine
