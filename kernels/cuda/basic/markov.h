// One step of a draft's low-rank head.
#pragma once

#include "kernels/cpu/decoder.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// Scratch for tokens·rank bf16 values besides that of the product; w1 and w2 bf16.
Reason can_run(const cpu::MarkovBias& p, const Launch& launch);
void run(const cpu::MarkovBias& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
