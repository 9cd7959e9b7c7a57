// The paths behind logits.h, for its choice and for tests that compare them.
#pragma once

#include "kernels/cpu/indexer.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda::logits {

/// fp32 products and sums: any format, any heads.
void run_general(const cpu::MqaLogitsPrefill& p, const Launch& launch);
void run_general(const cpu::MqaLogitsPaged& p, const Launch& launch);

/// wgmma e4m3, sm_90a only. The tensor cores keep about 13 bits behind the largest product of a
/// sum, so scores are some 1e-4 of a row's norm from exact ones.
Reason fits_hopper(const cpu::MqaLogitsPrefill& p, const Launch& launch);
Reason fits_hopper(const cpu::MqaLogitsPaged& p, const Launch& launch);
void run_hopper(const cpu::MqaLogitsPrefill& p, const Launch& launch);
void run_hopper(const cpu::MqaLogitsPaged& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda::logits
