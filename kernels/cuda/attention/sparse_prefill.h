// Attention over gathered bf16 rows (kernels/cpu/sparse_attention.h, SparsePrefill) on the device.
// Two kernels: prefill_sm90.cu where wgmma is, prefill_general.cu everywhere else. How fast and
// why: sparse_prefill.md.
#pragma once

#include "kernels/cpu/sparse_attention.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// Wants 16-byte aligned q, kv and out and arch >= 80; any number of heads.
Reason can_run(const cpu::SparsePrefill& p, const Launch& launch);
void run(const cpu::SparsePrefill& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
