// Collectives of the tensor-parallel group, entered and recorded.
#pragma once

#include "harness/engine/context.h"
#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

/// One rank has nothing to sum and enters nothing.
inline void sum_over_ranks(Context& context, const Tensor& t) {
  if (context.collectives.world() == 1) return;
  const std::int64_t seq = context.collectives.all_reduce("tp", t.payload_bytes());
  context.recorder.collective("tp", "all_reduce", t.payload_bytes(), seq);
}

/// Vocabulary shards of the logits → every rank; `t` is one rank's shard.
inline void gather_from_ranks(Context& context, const Tensor& t) {
  if (context.collectives.world() == 1) return;
  const std::int64_t seq = context.collectives.all_gather("tp", t.payload_bytes());
  context.recorder.collective("tp", "all_gather", t.payload_bytes(), seq);
}

}  // namespace warmgate::engine
