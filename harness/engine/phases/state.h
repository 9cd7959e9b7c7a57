// What start-up says about its own state, and proves about the contents of its dummy steps.
#pragma once

#include "harness/engine/phases/session.h"

namespace warmgate::engine::phases {

/// `state` now, by the name `at`: free blocks, requests that hold some, and where tensors have
/// contents the null block's digest and NaNs. All of them are to be as they were the first time.
void tell_state(Session& session, const char* at);

/// On a device that executes: the same short request before and after dummy steps whose inputs,
/// tables, slots, indices and null block were spoiled with 0x00, 0xFF (-1, NaN) and 0x7F (large).
/// Sends `poisoned` around each. Nothing where blocks are short or nothing is executed.
/// Origin of the fault that this looks for: NVIDIA/TensorRT-LLM#5947.
void spoiled_steps(Session& session);

}  // namespace warmgate::engine::phases
