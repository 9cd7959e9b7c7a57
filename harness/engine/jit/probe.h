// probe_keys: true: every warmed key is launched once before anything is served.
#pragma once

#include "harness/engine/jit/kernel_set.h"
#include "harness/engine/recorder.h"

namespace warmgate::engine {

/// Launches each key that warmup asked for on boundary inputs and poisoned outputs, and compares
/// with the independent reference (kernels/reference/metadata.h): the code that the compiler made,
/// where the device runs it, else the body on the host. Sends one `check` {tensor: key text, kind:
/// "probe", kernel, ok, fault, message, file, line} a key. What is broken does not end the phase:
/// the contract judges, also where a lenient compiler let the key pass.
void probe_keys(KernelSet& kernels, const Recorder& recorder);

}  // namespace warmgate::engine
