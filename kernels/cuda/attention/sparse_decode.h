// Sparse decode attention of device cuda: cpu::SparseDecode (kernels/cpu/sparse_attention.h) over
// fp8_ds_mla pages, its pointers in device memory. Lengths and indices are read on the device, so
// a captured call stays right when they change. sparse_decode.md says how it works and how fast.
#pragma once

#include "kernels/cpu/sparse_attention.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// Nothing where run() can: 1..128 heads, aligned pages, int32 sizes.
Reason can_run(const cpu::SparseDecode& p, const Launch& launch);
void run(const cpu::SparseDecode& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
