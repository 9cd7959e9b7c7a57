// Collectives of the tensor-parallel group, entered and recorded. Where tensors have contents,
// those are exchanged; else the call alone.
#pragma once

#include <stdexcept>

#include "harness/engine/context.h"
#include "harness/engine/ops/device.h"
#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

/// t (bf16 or fp32, contiguous) becomes the sum over ranks: in fp32, in the order of ranks, rounded
/// once, the same on all of them. One rank has nothing to sum and enters nothing.
void sum_over_ranks(Context& context, const Tensor& t);

/// Vocabulary shards of the logits → every rank: shard [rows, V/tp rounded up] fp32, all [rows, V]
/// fp32 in the order of ids. What a last shard has beyond V is left out.
void gather_from_ranks(Context& context, const Tensor& shard, const Tensor& all);

}  // namespace warmgate::engine
