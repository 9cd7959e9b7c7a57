#include "harness/engine/layers/dims.h"

#include <fmt/format.h>

#include <stdexcept>

#include "harness/engine/ops/query_key.h"

namespace warmgate::engine {

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kSwaOnly:
      return "swaonly";
    case Kind::kC4a:
      return "c4a";
    case Kind::kC128a:
      return "c128a";
  }
  return "?";
}

std::string_view to_string(Role role) { return role == Role::kTarget ? "target" : "draft"; }

Kind kind_of_ratio(std::int64_t ratio) {
  if (ratio == 1) return Kind::kSwaOnly;
  if (ratio == 4) return Kind::kC4a;
  if (ratio == 128) return Kind::kC128a;
  throw std::runtime_error(fmt::format("compress ratio {}: 0, 1, 4 and 128 are known", ratio));
}

std::int64_t ratio_of(Kind kind) {
  return kind == Kind::kSwaOnly ? 1 : kind == Kind::kC4a ? 4 : 128;
}

std::int64_t Dims::c128a_stride() const { return round_up(ceil_div(max_model_len, 128), 128); }

namespace {

void need(bool ok, const std::string& message) {
  if (!ok) throw std::runtime_error(message);
}

void check_sharding(const Dims& d) {
  need(d.tp >= 1 && d.heads >= 1 && d.heads % d.tp == 0,
       fmt::format("{} attention heads over tp {}: must divide", d.heads, d.tp));
  need(d.tp <= d.o_groups && d.o_groups % d.tp == 0,
       fmt::format("{} output groups over tp {}: each rank needs whole groups", d.o_groups, d.tp));
  need(d.heads % d.o_groups == 0,
       fmt::format("{} attention heads in {} output groups: must divide", d.heads, d.o_groups));
  need(d.padded_heads != 0,
       fmt::format("{} attention heads a rank; the decode kernel takes at most 128", d.rank_heads));
}

}  // namespace

Dims make_dims(const scenario::Resolved& config) {
  const auto& m = config.model;
  const auto& limits = config.limits;
  const auto& drafter = config.drafter;
  need(limits.max_model_len >= 1 && limits.max_num_batched_tokens >= 1 && limits.max_num_seqs >= 1,
       fmt::format("limits below 1: max_model_len {}, max_num_batched_tokens {}, max_num_seqs {}",
                   limits.max_model_len, limits.max_num_batched_tokens, limits.max_num_seqs));
  Dims d;
  d.hidden = m.hidden_size;
  d.layers = m.num_hidden_layers;
  d.draft_layers = drafter.active() ? drafter.layers : 0;
  d.tp = config.parallel.tp;
  d.heads = m.num_attention_heads;
  d.rank_heads = d.tp >= 1 ? d.heads / d.tp : 0;
  d.padded_heads = ops::padded_heads(d.rank_heads);
  d.head_dim = m.head_dim;
  d.rope_dim = m.qk_rope_head_dim;
  d.q_lora = m.q_lora_rank;
  d.o_groups = m.o_groups;
  d.rank_groups = d.tp >= 1 ? d.o_groups / d.tp : 0;
  d.o_lora = m.o_lora_rank;
  d.window = m.sliding_window;
  d.topk = m.index_topk;
  d.index_heads = m.index_n_heads;
  d.index_dim = m.index_head_dim;
  d.hc = m.hc_mult;
  d.experts = m.n_routed_experts;
  d.experts_per_token = m.num_experts_per_tok;
  d.shared_experts = m.n_shared_experts;
  d.vocab = m.vocab_size;
  check_sharding(d);
  d.rank_inter = ceil_div(m.moe_intermediate_size, d.tp);
  d.rank_shared_inter = ceil_div(m.moe_intermediate_size * m.n_shared_experts, d.tp);
  d.rank_vocab = ceil_div(m.vocab_size, d.tp);
  d.rope_rows = static_cast<std::int64_t>(m.rope_factor *
                                          static_cast<double>(m.original_max_position_embeddings));
  d.eps = m.rms_norm_eps;
  d.max_model_len = limits.max_model_len;
  d.max_tokens = limits.max_num_batched_tokens;
  d.max_seqs = limits.max_num_seqs;
  d.speculative = drafter.active() ? drafter.num_speculative_tokens : 0;
  d.markov_rank = drafter.markov_rank;
  d.target_taps = static_cast<std::int64_t>(drafter.target_layer_ids.size());
  d.inflight_tokens = (limits.async_scheduling ? 2 : 1) * d.max_tokens;
  d.fp4_indexer = m.indexer_cache_dtype == "fp4";
  d.parallel_drafting = drafter.active() && drafter.parallel_drafting();
  for (std::int64_t id = 0; id < d.layers; ++id) {
    d.any_kind[static_cast<int>(kind_of_ratio(scenario::effective_ratio(m, id)))] = true;
  }
  return d;
}

}  // namespace warmgate::engine
