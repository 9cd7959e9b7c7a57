#include "harness/engine/jit/kernel_domain.h"

#include <algorithm>

#include "harness/engine/jit/trace_dispatch.h"

namespace warmgate::engine {
namespace {

constexpr std::int64_t kIndexerRatio = 4;
constexpr std::int64_t kIndexAlignment = 128;
/// fp32 logits in 512 MiB (VLLM_SPARSE_INDEXER_MAX_LOGITS_MB).
constexpr std::int64_t kMaxLogits = (std::int64_t{512} << 20) / 4;

using Rows = std::vector<std::vector<std::int64_t>>;

void add_distinct(std::vector<std::int64_t>& list, std::int64_t value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

/// {topk, query_start_loc, seq_lens, gather_lens} as T and F.
std::vector<std::int64_t> alignment(std::string_view letters) {
  std::vector<std::int64_t> row;
  for (const char letter : letters) row.push_back(letter == 'T' ? 1 : 0);
  return row;
}

/// Index rows are always aligned. query_start_loc and seq_lens are sliced at the first request of a
/// prefill chunk, counted over the batch, gather_lens at the same request counted over prefills. A
/// chunk always takes its first four requests, so one that starts off a multiple of 4 has at least
/// five before it. vllm-project/vllm#45061.
Rows reachable_alignments(std::int64_t max_num_seqs) {
  Rows rows = {alignment("TTTT")};
  if (max_num_seqs >= 2) rows.push_back(alignment("TFFT"));
  if (max_num_seqs >= 6) rows.insert(rows.end(), {alignment("TTTF"), alignment("TFFF")});
  return rows;
}

/// (COMPRESS_RATIO, TOP_K, columns of the index tensor) of each layer kind.
Rows reachable_rows(const KernelDomain& domain) {
  Rows rows;
  for (const std::int64_t ratio : domain.prefill_ratios) {
    if (ratio == 1) {
      rows.push_back({1, 0, domain.index_topk});
    } else if (ratio == kIndexerRatio) {
      rows.push_back({ratio, domain.index_topk, domain.index_topk});
    } else {
      for (const std::int64_t width : domain.c128a_widths) rows.push_back({ratio, width, width});
    }
  }
  return rows;
}

std::vector<CombineKey> combine_keys(std::int64_t window, const Rows& rows,
                                     const Rows& alignments) {
  if (rows.empty()) return {};
  WarmupInputs<CombineInputs> inputs;
  inputs
      .zip({&CombineInputs::compress_ratio, &CombineInputs::topk, &CombineInputs::index_width},
           rows)
      .values(&CombineInputs::window, {window})
      .zip({&CombineInputs::topk_aligned, &CombineInputs::query_start_loc_aligned,
            &CombineInputs::seq_lens_aligned, &CombineInputs::gather_lens_aligned},
           alignments);
  return trace_dispatch(inputs, DispatchCombine());
}

std::vector<BuildChunkKey> build_chunk_keys(const Rows& slices,
                                            const std::vector<std::int64_t>& ratios,
                                            std::int64_t max_num_seqs) {
  if (ratios.empty() || slices.empty()) return {};
  WarmupInputs<BuildChunkInputs> inputs;
  inputs.zip({&BuildChunkInputs::query_slice_start, &BuildChunkInputs::query_slice_stop}, slices)
      .values(&BuildChunkInputs::compress_ratio, ratios)
      .values(&BuildChunkInputs::seq_lens_aligned,
              max_num_seqs >= 2 ? std::vector<std::int64_t>{1, 0} : std::vector<std::int64_t>{1});
  return trace_dispatch(inputs, DispatchBuildChunk());
}

/// One slice for each pair of classes that 0 <= start < stop <= B can have.
Rows reachable_slices(const KernelDomain& domain) {
  Rows slices;
  for (const IntClass start_class : domain.slice_start_classes()) {
    const std::int64_t start = start_class == IntClass::kDiv16 ? 0
                               : start_class == IntClass::kOne ? 1
                                                               : 2;
    for (const std::int64_t stop : {1, 15, 16}) {
      // The smallest stop of the class decides whether B admits it.
      const std::int64_t smallest = stop == 15 ? std::max<std::int64_t>(2, start + 1) : stop;
      if (start < stop && smallest <= domain.max_num_batched_tokens)
        slices.push_back({start, stop});
    }
  }
  return slices;
}

std::vector<std::int64_t> indexer_ratios(const KernelDomain& domain) {
  const auto& all = domain.prefill_ratios;
  const bool has = std::find(all.begin(), all.end(), kIndexerRatio) != all.end();
  return has ? std::vector<std::int64_t>{kIndexerRatio} : std::vector<std::int64_t>{};
}

/// The slices of the modelled engine: start 0 and 1, stop 1, 2m-1, 2m with m = min(B, 8).
Rows fixed_slices(std::int64_t max_num_batched_tokens) {
  const std::int64_t m = std::min<std::int64_t>(max_num_batched_tokens, 8);
  Rows slices;
  for (const std::int64_t start : {0, 1}) {
    for (const std::int64_t stop : {std::int64_t{1}, 2 * m - 1, 2 * m})
      slices.push_back({start, stop});
  }
  return slices;
}

}  // namespace

std::int64_t c128a_max_width(std::int64_t max_model_len) {
  const std::int64_t entries = (max_model_len + 127) / 128;
  return (entries + kIndexAlignment - 1) / kIndexAlignment * kIndexAlignment;
}

KernelDomain::KernelDomain(const scenario::Resolved& config)
    : max_num_seqs(config.limits.max_num_seqs),
      max_num_batched_tokens(config.limits.max_num_batched_tokens),
      max_model_len(config.limits.max_model_len),
      index_topk(config.model.index_topk),
      window(config.model.sliding_window) {
  for (std::int64_t layer = 0; layer < config.model.num_hidden_layers; ++layer) {
    add_distinct(prefill_ratios, scenario::effective_ratio(config.model, layer));
  }
  // Draft layers are window-only. A parallel drafter's requests all count as decode; an
  // autoregressive one follows the target through its prefills.
  if (config.drafter.active() && !config.drafter.parallel_drafting())
    add_distinct(prefill_ratios, 1);
  std::sort(prefill_ratios.begin(), prefill_ratios.end());
  const std::int64_t widest = c128a_max_width(max_model_len);
  if (config.seams.at("c128a.width") == "packed") {
    for (std::int64_t w = kIndexAlignment;; w *= 2) {
      add_distinct(c128a_widths, std::min(w, widest));
      if (w >= next_pow2(max_model_len / 128)) break;
    }
  } else {
    c128a_widths = {widest};
  }
}

std::vector<IntClass> KernelDomain::slice_start_classes() const {
  std::vector<IntClass> classes = {IntClass::kDiv16};  // 0: every chunk's first piece
  const std::int64_t most_keys = max_model_len / kIndexerRatio;
  if (most_keys == 0 || max_num_batched_tokens * most_keys <= kMaxLogits) return classes;
  bool one = false, any = false;
  // Queries that fit beside k keys: max(1, limit / k); q is one of these quotients if k = limit / q
  // gives it back.
  for (std::int64_t q = std::max<std::int64_t>(1, kMaxLogits / most_keys);
       q < max_num_batched_tokens && !any; ++q) {
    if (q > 1 && kMaxLogits / (kMaxLogits / q) != q) continue;
    one = one || q == 1;
    any = q == 1 ? max_num_batched_tokens > 3 : q % 16 != 0;  // multiples of 1 have every class
  }
  if (one) classes.push_back(IntClass::kOne);
  if (any) classes.push_back(IntClass::kAny);
  return classes;
}

std::vector<ComputePrefillKey> reachable_compute_prefill(const KernelDomain& domain) {
  const std::int64_t most = std::min(domain.max_num_seqs, domain.max_num_batched_tokens);
  if (most < 1) return {};
  WarmupInputs<ComputePrefillInputs> inputs;
  inputs.range(&ComputePrefillInputs::num_prefills, {1, most + 1, 1});
  return trace_dispatch(inputs, DispatchComputePrefill());
}

std::vector<BuildChunkKey> reachable_build_chunk(const KernelDomain& domain) {
  return build_chunk_keys(reachable_slices(domain), indexer_ratios(domain), domain.max_num_seqs);
}

std::vector<CombineKey> reachable_combine(const KernelDomain& domain) {
  return combine_keys(domain.window, reachable_rows(domain),
                      reachable_alignments(domain.max_num_seqs));
}

std::vector<ComputePrefillKey> warmup_compute_prefill(const scenario::Resolved& config) {
  return reachable_compute_prefill(KernelDomain(config));
}

std::vector<BuildChunkKey> warmup_build_chunk(const scenario::Resolved& config) {
  const KernelDomain domain(config);
  const std::string& which = config.seams.at("warmup.chunk_ratios");
  std::vector<std::int64_t> ratios;
  if (which == "indexer_caches") {
    ratios = indexer_ratios(domain);
  } else {
    for (const std::int64_t ratio : config.model.compress_ratios) {
      add_distinct(ratios, which == "config_clamped" ? std::max<std::int64_t>(1, ratio) : ratio);
    }
  }
  const bool fixed = config.seams.at("warmup.chunk_starts") == "zero_and_one";
  const std::int64_t B = domain.max_num_batched_tokens;
  return build_chunk_keys(fixed ? fixed_slices(B) : reachable_slices(domain), ratios,
                          fixed ? 2 : domain.max_num_seqs);
}

std::vector<CombineKey> warmup_combine(const scenario::Resolved& config) {
  const KernelDomain domain(config);
  const Rows fixed_rows = {{1, 0, 512}, {4, 512, 512}, {4, 1024, 1024}, {128, 8192, 8192}};
  const Rows fixed_alignments = {alignment("TTTT"), alignment("TFFT"), alignment("FFFF")};
  return combine_keys(
      domain.window,
      config.seams.at("warmup.combine_rows") == "fixed" ? fixed_rows : reachable_rows(domain),
      config.seams.at("warmup.combine_alignments") == "fixed"
          ? fixed_alignments
          : reachable_alignments(domain.max_num_seqs));
}

}  // namespace warmgate::engine
