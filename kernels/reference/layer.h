// The decoder layer around attention, as executing devices run it (experts and hyper-connections
// are stand-ins there).
#pragma once

#include "kernels/reference/matrix.h"

namespace warmgate::reference {

/// x / (1 + e^-x)
double silu(double x);

/// down · (silu(gate) · up); gate_up [2 * inter, hidden] holds gate's rows, then up's; down
/// [hidden, inter].
Vector gated_mlp(View x, const Matrix& gate_up, const Matrix& down, double limit = 0);

/// The activation alone: gate_up [2 * inter] -> silu(first half) · second half. limit > 0
/// (DeepSeek-V4's swiglu_limit): the first half at most limit, the second within +-limit, before
/// that.
Vector silu_and_mul(View gate_up, double limit = 0);

/// residual + y
Vector add(View residual, View y);

/// The first index of the largest value; -1 for no values or a NaN among them.
std::int64_t argmax(View logits);

}  // namespace warmgate::reference
