// Weights made from a seed on the device: the same bits as kernels/cpu/seeded.h.
#pragma once

#include "kernels/cpu/seeded.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

void fill_seeded(const cpu::SeededMatrix& m, cpu::Bf16* out, const Launch& launch);
void fill_seeded(const cpu::SeededMatrix& m, float* out, const Launch& launch);
void fill_seeded(const cpu::SeededMatrix& m, cpu::E4m3* out, cpu::Ue8m0* scales,
                 const Launch& launch);
void fill_seeded_fp4(const cpu::SeededMatrix& m, cpu::Nibbles* out, cpu::Ue8m0* scales,
                     const Launch& launch);

}  // namespace warmgate::kernels::cuda
