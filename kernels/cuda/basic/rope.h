// RoPE tables, filled on the device.
#pragma once

#include "kernels/cpu/rope.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

Reason can_run(const cpu::RopeTable& p, const Launch& launch);
void run(const cpu::RopeTable& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
