// Index lists and lengths. Exact.
#pragma once

#include "kernels/cpu/metadata.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

Reason can_run(const cpu::TokenToReq& p, const Launch& launch);
void run(const cpu::TokenToReq& p, const Launch& launch);
Reason can_run(const cpu::SlotMapping& p, const Launch& launch);
void run(const cpu::SlotMapping& p, const Launch& launch);
Reason can_run(const cpu::SwaIndices& p, const Launch& launch);
void run(const cpu::SwaIndices& p, const Launch& launch);
Reason can_run(const cpu::NoncausalSwaIndices& p, const Launch& launch);
void run(const cpu::NoncausalSwaIndices& p, const Launch& launch);
Reason can_run(const cpu::CompressedIndices& p, const Launch& launch);
void run(const cpu::CompressedIndices& p, const Launch& launch);
Reason can_run(const cpu::VisibleEntries& p, const Launch& launch);
void run(const cpu::VisibleEntries& p, const Launch& launch);
Reason can_run(const cpu::ExpandTable& p, const Launch& launch);
void run(const cpu::ExpandTable& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
