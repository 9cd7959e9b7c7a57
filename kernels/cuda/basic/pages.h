// Rows into and out of fp8_ds_mla pages. Exact, to the bit as kernels/cpu (a NaN stays a NaN).
#pragma once

#include "kernels/cpu/pages.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// k, pages and their stride aligned to 16 bytes.
Reason can_run(const cpu::InsertDsMla& p, const Launch& launch);
void run(const cpu::InsertDsMla& p, const Launch& launch);

/// Lengths are read on the device, so a captured call follows them.
Reason can_run(const cpu::DequantGather& p, const Launch& launch);
void run(const cpu::DequantGather& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
