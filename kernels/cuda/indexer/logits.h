// The indexer's scores: logits[t,j] = Σ_head ReLU(q[t,head]·k[j]) · w[t,head].
// Two paths: fp8 with 64 heads on arch 90 goes through the tensor cores (logits.md), everything
// else through fp32 products on any GPU of arch >= 80.
#pragma once

#include "kernels/cpu/indexer.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// No row may end beyond logits_stride columns.
Reason can_run(const cpu::MqaLogitsPrefill& p, const Launch& launch);
void run(const cpu::MqaLogitsPrefill& p, const Launch& launch);
Reason can_run(const cpu::MqaLogitsPaged& p, const Launch& launch);
void run(const cpu::MqaLogitsPaged& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
