// The indexer of ratio-4 layers: queries, weights, scores, and what a right choice of top-k is.
// vLLM at d40c3e3c00, vllm/models/deepseek_v4/common/ops/fused_indexer_q.py.
#pragma once

#include <string>

#include "kernels/reference/quantise.h"
#include "kernels/reference/rope.h"

namespace warmgate::reference {

/// qr [q_lora] of one token -> heads * dim values, RoPE applied to each head, not rounded.
Vector indexer_query(View qr, const Matrix& wq_b, std::int64_t dim, const Rope& rope,
                     std::int64_t position);

/// One token's query, head by head, from its bf16 values: e4m3 with one scale per head. `unscaled`
/// of each is what scores multiply (the scale sits in the weight).
std::vector<Quantised> quantise_indexer_query(View query, std::int64_t dim);

/// w · dim^-0.5 · heads^-0.5 · scale of the head's query (1 where the query keeps its own scale).
Vector indexer_weights(View w, std::int64_t dim, View query_scales);

/// score[j] = Σ_head ReLU(query[head] · key[j]) · weight[head]; query heads * dim, keys [n, dim].
Vector indexer_scores(View query, const Matrix& keys, View weights);

/// Empty if the row is right, else what is wrong. `scores` has one score per visible entry;
/// `chosen` is the whole row of the buffer, width >= k: min(k, visible) different visible entries,
/// none worse than the k-th best score - epsilon, in any order, then -1 to the end.
std::string judge_topk(View scores, std::int64_t k, std::span<const std::int32_t> chosen,
                       double epsilon);

}  // namespace warmgate::reference
