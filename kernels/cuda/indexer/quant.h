// The indexer's quantised queries, and its keys out of the pages. Any GPU of arch >= 80; the bits
// are those of kernels/cpu (a NaN stays a NaN, its sign bit may differ).
#pragma once

#include "kernels/cpu/indexer.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda {

/// Any heads. iq, weights, q aligned as their elements are; 16 bytes for iq and cos_sin and 8 for q
/// make it fast.
Reason can_run(const cpu::IndexerQuant& p, const Launch& launch);
void run(const cpu::IndexerQuant& p, const Launch& launch);

/// Any number of requests: where a request begins in `values` comes from seq_lens on the device, so
/// a captured call follows them. Rows of 16-byte aligned pages and outputs go 16 bytes at a time.
Reason can_run(const cpu::GatherIndexerKeys& p, const Launch& launch);
void run(const cpu::GatherIndexerKeys& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda
