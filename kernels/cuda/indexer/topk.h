// Which compressed entries a query attends to. Any GPU of arch >= 80, any row length; the bits are
// those of kernels/cpu.
#pragma once

#include "kernels/cpu/topk.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// No row may end beyond logits_stride columns.
Reason can_run(const cpu::TopkPerRow& p, const Launch& launch);
void run(const cpu::TopkPerRow& p, const Launch& launch);

Reason can_run(const cpu::FillShortContext& p, const Launch& launch);
void run(const cpu::FillShortContext& p, const Launch& launch);

Reason can_run(const cpu::GlobalTopkIndices& p, const Launch& launch);
void run(const cpu::GlobalTopkIndices& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
