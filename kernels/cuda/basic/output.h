// After attention: inverse rotation and quantisation. Exact, to the bit as kernels/cpu.
#pragma once

#include "kernels/cpu/output_projection.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// inputs a multiple of 512; pointers aligned to 16 bytes.
Reason can_run(const cpu::InverseRopeQuant& p, const Launch& launch);
void run(const cpu::InverseRopeQuant& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
