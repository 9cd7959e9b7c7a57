// Root mean square norms: fp32 inside, one rounding; the sum's order differs from kernels/cpu.
#pragma once

#include "kernels/cpu/norm.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// Any width and stride; multiples of eight up to 8192 with 16-byte aligned pointers are fast.
Reason can_run(const cpu::RmsNorm& p, const Launch& launch);
void run(const cpu::RmsNorm& p, const Launch& launch);

/// Both norms in one launch.
Reason can_run(const cpu::FusedQkvNorm& p, const Launch& launch);
void run(const cpu::FusedQkvNorm& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
