// Attention with a sink over given keys, which are values as well (one shared key-value head).
#pragma once

#include "kernels/reference/matrix.h"

namespace warmgate::reference {

/// One head: Σ e^{s_k} k / (Σ e^{s_k} + e^sink), s_k = scale · q·k. sink -inf: plain softmax; +inf,
/// or no keys: zeros. keys [n, dim]; scale is head_dim^-0.5.
Vector attend(View q, const Matrix& keys, double sink, double scale);

/// One token: q [heads * dim], sinks [heads] -> [heads * dim].
Vector attend_heads(View q, const Matrix& keys, View sinks, double scale);

/// Rows of a, then rows of b (compressed entries, then window keys).
Matrix stacked(const Matrix& a, const Matrix& b);

}  // namespace warmgate::reference
