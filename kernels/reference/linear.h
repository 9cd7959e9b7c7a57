// Projections and normalisations. DeepSeek-V4, vLLM at d40c3e3c00, models/deepseek_v4/attention.py.
#pragma once

#include "kernels/reference/matrix.h"

namespace warmgate::reference {

/// Σ x·w, from the front. Sizes are equal.
double dot(View x, View w);

/// x · wᵀ: x [T, in], w [out, in] -> [T, out]. Throws if the inner sizes differ.
Matrix project(const Matrix& x, const Matrix& w);
Vector project(View x, const Matrix& w);

/// x / sqrt(mean(x²) + eps) · weight, over the whole row; weight has the row's size.
Vector rms_norm(View x, View weight, double eps);

/// The same without weight: queries, per head.
Vector rms_norm(View x, double eps);

/// q [h * head_dim] of one token: every head normalised for itself.
Vector norm_heads(View q, std::int64_t head_dim, double eps);

}  // namespace warmgate::reference
