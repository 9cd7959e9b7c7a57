// Which part of the whole matrix a rank holds of each weight, and what it is filled with.
// Origin of sharding: vLLM at d40c3e3c00, models/deepseek_v4/attention.py (column by head or group,
// row for wo_b, the rest replicated), model_executor/layers/linear.py (gate and up each by column),
// vocab_parallel_embedding.py.
#pragma once

#include "harness/engine/layers/weights.h"
#include "harness/engine/ops/seed_weight.h"

namespace warmgate::engine {

/// What is never read where ops execute (routed experts beside shared ones, routers, mixing
/// matrices of the hyper-connections) has Fill::kNone.
WeightSource source_of(const WeightSpec& spec, const Dims& dims, const scenario::Model& model,
                       int rank);

}  // namespace warmgate::engine
