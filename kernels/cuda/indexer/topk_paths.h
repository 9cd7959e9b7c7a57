// The paths behind topk.h, for its choice and for tests that compare them.
#pragma once

#include "kernels/cpu/topk.h"
#include "kernels/cuda/launch.h"

namespace warmgate::kernels::cuda::topk {

/// A block a row that reads it up to four times.
void run_general(const cpu::TopkPerRow& p, const Launch& launch);

/// A cluster of 1..16 blocks a row that reads it once, into registers. arch 90; rows begin at
/// 16-byte addresses and have at most 262144 columns.
Reason fits_cluster(const cpu::TopkPerRow& p, const Launch& launch);
void run_cluster(const cpu::TopkPerRow& p, const Launch& launch);
/// The same for rows of at most 16384 columns, of which a block takes many: run_cluster()'s way
/// with long rows that are more than the multiprocessors.
void run_rows(const cpu::TopkPerRow& p, const Launch& launch);

}  // namespace warmgate::kernels::cuda::topk
