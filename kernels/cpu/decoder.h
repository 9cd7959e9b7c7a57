// What surrounds attention: embedding, residual copies, selection, greedy choice.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm.h"

namespace warmgate::kernels::cpu {

/// out[t,:] = table[ids[t] - first_id,:]; ids outside [first_id, first_id+rows) give zeros (another
/// rank's shard). table [rows,width] bf16, ids [tokens] i64, out [tokens,width] bf16.
struct Embed {
  std::int64_t tokens = 0, width = 0, rows = 0, first_id = 0;
  const std::int64_t* ids = nullptr;
  const Bf16* table = nullptr;
  Bf16* out = nullptr;
};
void embed(const Embed& p);

/// Residual copies [tokens,copies,width] bf16, all equal; x, y [tokens,width] bf16.
struct Copies {
  std::int64_t tokens = 0, copies = 0, width = 0;
  std::int64_t x_stride = 0;  // mean_of_copies alone: elements from row to row of x; 0: width
};
/// residual[t,c,:] = x[t,:] for all c.
void spread_copies(const Copies& shape, const Bf16* x, Bf16* residual);
/// x[t,:] = residual[t,0,:].
void first_copy(const Copies& shape, const Bf16* residual, Bf16* x);
/// residual[t,c,:] = bf16(residual[t,0,:] + y[t,:]) for all c.
void add_to_copies(const Copies& shape, const Bf16* y, Bf16* residual);
/// x[t,:] = mean over the copies, fp32 in ascending order, one rounding.
void mean_of_copies(const Copies& shape, const Bf16* residual, Bf16* x);

/// out[i,:] = x[rows[i],:], bf16, i = 0..count-1; rows i64.
void select_rows(std::int64_t count, std::int64_t width, const std::int64_t* rows, const Bf16* x,
                 Bf16* out);

/// ids[t] = first_id + column of the largest logit; ties to the lower column; NaN never wins; a row
/// of NaN alone gives first_id. best [tokens] fp32 (optional): that logit, -inf for NaN alone.
struct Argmax {
  std::int64_t tokens = 0, width = 0, stride = 0, first_id = 0;
  const float* logits = nullptr;
  std::int64_t* ids = nullptr;
  float* best = nullptr;
};
void argmax(const Argmax& p);

/// One step of a draft's low-rank head: logits[b,:] = base[row,:] + w2 · w1[previous[b],:], with
/// row = min(b·per_request + position, base_rows - 1). w1, w2 [vocab,rank] bf16, previous [tokens]
/// i64, base and logits fp32; base nullptr: zeros. An id outside the table counts as zeros.
struct MarkovBias {
  std::int64_t tokens = 0, vocab = 0, rank = 0;
  const std::int64_t* previous = nullptr;
  Weights w1, w2;
  const float* base = nullptr;
  std::int64_t base_rows = 0, base_stride = 0, per_request = 1, position = 0;
  float* logits = nullptr;
  std::int64_t logits_stride = 0;
};
void markov_bias(const MarkovBias& p);

/// out[i] = bf16(terms[0][i] + terms[1][i] + …), fp32 sums in ascending order: what an all-reduce
/// of bf16 tensors over `count` ranks gives on every rank. out may be one of the terms.
void sum_bf16(std::int64_t elements, std::int64_t count, const Bf16* const* terms, Bf16* out);

}  // namespace warmgate::kernels::cpu
