// Products. bf16 products on the matrix units through cuBLASLt, opened at run time; fp8 and fp4
// weights are widened to bf16 first (a value times a power of two is exact there), for few tokens
// they are read as they are. Sums are fp32 throughout; their order differs from kernels/cpu.
#pragma once

#include <string>

#include "kernels/cpu/gemm.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// Many tokens with fp8 or fp4 weights need scratch for at least 64 rows of w as bf16.
Reason can_run(const cpu::Gemm& p, const Launch& launch);
void run(const cpu::Gemm& p, const Launch& launch);

/// Scratch for one token of x as bf16 and 64 rows of w.
Reason can_run(const cpu::GroupedProjection& p, const Launch& launch);
void run(const cpu::GroupedProjection& p, const Launch& launch);

/// Scratch for one token's gate, up and h besides that of its products.
Reason can_run(const cpu::GatedMlp& p, const Launch& launch);
void run(const cpu::GatedMlp& p, const Launch& launch);

/// Which library multiplies, or why a kernel of this folder does (right, but many times slower).
const std::string& gemm_note();

}  // namespace warmgate::kernels::cuda
