// The sizes one rank computes with, derived once from the resolved scenario.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/scenario/resolved.h"

namespace warmgate::engine {

enum class Kind : std::uint8_t { kSwaOnly, kC4a, kC128a };
enum class Role : std::uint8_t { kTarget, kDraft };
inline constexpr int kNumKinds = 3;

std::string_view to_string(Kind kind);
std::string_view to_string(Role role);
/// 1 → swaonly, 4 → c4a, 128 → c128a; std::runtime_error for any other ratio.
Kind kind_of_ratio(std::int64_t ratio);
std::int64_t ratio_of(Kind kind);

struct Dims {
  std::int64_t hidden = 0, layers = 0, draft_layers = 0;
  std::int64_t tp = 1, heads = 0, rank_heads = 0, padded_heads = 0;
  std::int64_t head_dim = 512, rope_dim = 64, q_lora = 0;
  std::int64_t o_groups = 0, rank_groups = 0, o_lora = 0;
  std::int64_t window = 128, topk = 512, index_heads = 64, index_dim = 128;
  std::int64_t hc = 4, experts = 0, experts_per_token = 0, shared_experts = 0;
  std::int64_t rank_inter = 0, rank_shared_inter = 0, vocab = 0, rank_vocab = 0;
  std::int64_t rope_rows = 0;      // rows of cos_sin tables: YaRN factor x original length
  std::int64_t max_model_len = 0;  // L
  std::int64_t max_tokens = 0;     // B
  std::int64_t max_seqs = 0;       // S
  std::int64_t speculative = 0;    // N
  std::int64_t markov_rank = 0, target_taps = 0;
  std::int64_t inflight_tokens = 0;  // B, or 2B with asynchronous scheduling
  double eps = 1e-6;                 // of all RMS norms
  bool fp4_indexer = false, parallel_drafting = false;
  bool any_kind[kNumKinds] = {};  // among target layers

  bool has(Kind kind) const { return any_kind[static_cast<int>(kind)]; }
  /// Query length up to which attention counts a request as decode: 1 + m·N, m = 2 with parallel
  /// drafting. Origin: vLLM at d40c3e3c00, v1/attention/backends/mla/sparse_swa.py.
  std::int64_t decode_threshold() const { return 1 + (parallel_drafting ? 2 : 1) * speculative; }
  /// The indexer's: 1 + N. Origin: same revision, v1/attention/backends/mla/indexer.py.
  std::int64_t indexer_threshold() const { return 1 + speculative; }
  /// Columns of the C128A index tensors at full stride: round_up(ceil(L/128), 128).
  std::int64_t c128a_stride() const;
  /// Compressed rows that the gather buffer of the indexer holds: 40·L tokens at ratio 4.
  std::int64_t indexer_gather_rows() const { return 40 * max_model_len / 4; }
  std::int64_t indexer_value_bytes() const { return fp4_indexer ? index_dim / 2 : index_dim; }
  std::int64_t indexer_scale_bytes() const { return fp4_indexer ? index_dim / 32 : 4; }
};

/// Throws std::runtime_error naming the numbers where the model cannot be sharded or run: heads or
/// groups that tp does not divide, tp above o_groups, more heads a rank than the decode kernel
/// takes, ratios other than 0, 1, 4, 128, limits below 1.
Dims make_dims(const scenario::Resolved& config);

}  // namespace warmgate::engine
