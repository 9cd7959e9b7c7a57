// Query and window key. Rotation and quantisation are exact; the norm's sum of squares has another
// order than kernels/cpu.
#pragma once

#include "kernels/cpu/query_key.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// All pointers aligned to 16 bytes.
Reason can_run(const cpu::QNormRopeInsert& p, const Launch& launch);
void run(const cpu::QNormRopeInsert& p, const Launch& launch);

Reason can_run(const cpu::PadQ& p, const Launch& launch);
void run(const cpu::PadQ& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
