// The key lists, slots and lengths that attention and indexer read, made from positions, tables and
// requests once a step. Rows are tokens, counted from `first_token` of the step.
// Origin: vLLM at d40c3e3c00, v1/attention/backends/mla/{sparse_swa,indexer,compressor_utils}.py
// and models/deepseek_v4/sparse_mla.py.
#pragma once

#include "harness/engine/ops/metadata.h"

namespace warmgate::engine::ops {

/// compute_swa_indices_and_lens: in = positions, table = window block table, out = slots
/// [B,1,W] i32 of positions max(p-W+1,0)..p, out2 = their number [B] i32. A token that is not valid
/// gets length 0 and its slots stay; lengths behind `count` become 0.
struct SwaLists : FillMetadata {
  Tensor token_to_req, is_valid;
  std::int64_t first_token = 0, block_tokens = 64, window = 128;
};
void run(const SwaLists& p, const Device& device);

/// compute_dspark_noncausal_swa_indices: all tokens of a request's block share the keys from
/// max(prefix-W,0) to the end of the block; out [B,1,width] i32, out2 [B] i32.
struct NoncausalLists : FillMetadata {
  Tensor token_to_req, is_valid, query_start, seq_lens;
  std::int64_t block_tokens = 64, window = 128;
};
void run(const NoncausalLists& p, const Device& device);

/// compressed_slot_mapping: in = positions, table = compressed block table, out = slots [B] i64;
/// only where (p+1) mod ratio is 0, -1 everywhere else, behind the step's tokens too.
struct CompressedSlots : FillMetadata {
  Tensor token_to_req;
  std::int64_t ratio = 4, block_rows = 64;  // rows stored a block
};
void run(const CompressedSlots& p, const Device& device);

/// build_c128a_topk_metadata, decode part (out2 present): global slots of all complete entries,
/// then -1, and their number, 0 for tokens that are not valid. Prefill part: 0..n-1, then -1.
/// out [B,width] i32, rows packed at the width.
struct C128Lists : FillMetadata {
  Tensor token_to_req, is_valid;
  std::int64_t first_token = 0, block_rows = 2;
};
void run(const C128Lists& p, const Device& device);

/// prepare_uniform_decode: in = seq_lens, table = indexer block table, out = context lengths in
/// compressed units, (p+1)/4 of each of `tokens` tokens, packed from the front whether tokens are
/// rows of their own ([B,1] i32) or several a request ([S,next_n] i32); out2 = the table expanded
/// to such rows of their own (absent otherwise).
struct DecodeContexts : FillMetadata {
  Tensor positions, token_to_req;
  std::int64_t tokens = 0, block_rows = 64;
};
void run(const DecodeContexts& p, const Device& device);

/// paged_mqa_logits_metadata: in = context lengths, out = [multiprocessors+1,2] i32, where each
/// multiprocessor's share of the rows begins: (row, piece of its keys).
struct ScoringSchedule : FillMetadata {
  std::int64_t contexts = 0;  // rows of `in` in use
};
void run(const ScoringSchedule& p, const Device& device);

}  // namespace warmgate::engine::ops
