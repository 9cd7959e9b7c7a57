// Forward of one attention layer, in the pieces of the modelled engine. `step` null: profiling, no
// metadata and no block tables exist.
// Origin: vLLM at d40c3e3c00, models/deepseek_v4/attention.py and nvidia/flashmla.py.
#pragma once

#include "harness/engine/layers/layer_state.h"
#include "harness/engine/layers/metadata.h"

namespace warmgate::engine {

struct AttentionCall {
  Executor& exec;
  const Dims& dims;
  LayerState& layer;
  const StepMetadata* step;  // null in profiling
  Tensor positions;          // [>=T] i64
  std::int64_t tokens = 0;
  Context& context() const { return exec.context(); }
};

/// What the input projections of §"input" leave behind.
struct Projected {
  Tensor qr, kv;                    // [T,q_lora], [T,D] bf16, normalised
  Tensor kv_score, index_kv_score;  // fp32, compressed kinds; c4a
  Tensor index_weights;             // [T,heads] bf16, c4a
};

/// x [T,H] bf16 → y [T,H] bf16, summed over ranks.
void attention_forward(const AttentionCall& call, const Tensor& x, const Tensor& y);

// The pieces, in order of use.
Projected project_inputs(const AttentionCall& call, const Tensor& x, Activations& act);
void run_compressor(const AttentionCall& call, const Projected& in);
void run_indexer(const AttentionCall& call, const Projected& in, Activations& act);
/// Without metadata: reserves the workspace that serving will ask for and zeroes the output.
void profile_attention(const AttentionCall& call, const Tensor& out);
void prefill_attention(const AttentionCall& call, const Tensor& q, const Tensor& out);
void decode_attention(const AttentionCall& call, const Tensor& q, const Tensor& out,
                      Activations& act);
void project_output(const AttentionCall& call, const Tensor& out, const Tensor& y,
                    Activations& act);

/// Index columns that profiling reserves for, by the seams profile.topk_bound and
/// workspace.reservation. May throw ResourceMissing.
std::int64_t profiled_topk(const AttentionCall& call);

}  // namespace warmgate::engine
