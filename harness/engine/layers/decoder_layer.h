// One decoder layer: hyper-connections around attention and experts.
#pragma once

#include "harness/engine/layers/attention.h"

namespace warmgate::engine {

/// residual [T,hc,H] bf16 in and out.
void decoder_layer_forward(const AttentionCall& call, const Tensor& residual);

}  // namespace warmgate::engine
