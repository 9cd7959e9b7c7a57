// The window compressor. State rows are exact; entries are sums (softmax over rows, norm) whose
// order differs from kernels/cpu before they are rounded and quantised.
#pragma once

#include "kernels/cpu/compressor.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// width a multiple of four; tensors and state pages aligned to 16 bytes.
Reason can_run(const cpu::SavePartialStates& p, const Launch& launch);
void run(const cpu::SavePartialStates& p, const Launch& launch);

/// Windows of up to 256 rows; dim 512 into ds_mla pages, 128 into indexer pages; aligned to 16.
Reason can_run(const cpu::CompressWindow& p, const Launch& launch);
void run(const cpu::CompressWindow& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
