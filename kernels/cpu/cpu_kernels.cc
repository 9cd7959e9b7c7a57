#include "kernels/cpu/cpu_kernels.h"

#include <algorithm>
#include <vector>

namespace warmgate::kernels {

namespace {

/// Rows of indices of which all columns count, each through `map`. A row of length 0 (no token)
/// stays without keys.
struct WholeRows {
  template <class Map>
  WholeRows(const std::int32_t* from, const std::int32_t* lens_in, std::int64_t tokens,
            std::int64_t width, Map map)
      : indices(from, from + tokens * width), lens(lens_in, lens_in + tokens) {
    for (std::int32_t& index : indices) index = map(index);
    for (std::int32_t& length : lens) length = length > 0 ? static_cast<std::int32_t>(width) : 0;
  }
  std::vector<std::int32_t> indices, lens;
};

}  // namespace

void CpuKernels::sparse_prefill(const cpu::SparsePrefill& p) {
  if (!p.whole_rows) return cpu::sparse_prefill(p);
  const WholeRows rows(p.indices, p.lens, p.tokens, p.width, [&](std::int32_t index) {
    return p.keys == 0 || index < p.keys ? index : -1;
  });
  cpu::SparsePrefill whole = p;
  whole.indices = rows.indices.data();
  whole.lens = rows.lens.data();
  cpu::sparse_prefill(whole);
}

void CpuKernels::sparse_decode(const cpu::SparseDecode& p) {
  if (!p.counts_padding) return cpu::sparse_decode(p);
  const WholeRows rows(p.indices, p.lens, p.tokens, p.width,
                       [](std::int32_t index) { return std::max(index, 0); });
  cpu::SparseDecode whole = p;
  whole.indices = rows.indices.data();
  whole.lens = rows.lens.data();
  cpu::sparse_decode(whole);
}

void CpuKernels::insert_ds_mla(const cpu::InsertDsMla& p) { cpu::insert_ds_mla(p); }
void CpuKernels::dequant_gather(const cpu::DequantGather& p) { cpu::dequant_gather(p); }
void CpuKernels::qnorm_rope_insert(const cpu::QNormRopeInsert& p) { cpu::qnorm_rope_insert(p); }
void CpuKernels::pad_q(const cpu::PadQ& p) { cpu::pad_q(p); }
void CpuKernels::save_partial_states(const cpu::SavePartialStates& p) {
  cpu::save_partial_states(p);
}
void CpuKernels::compress_window(const cpu::CompressWindow& p) { cpu::compress_window(p); }
void CpuKernels::indexer_quant(const cpu::IndexerQuant& p) { cpu::indexer_quant(p); }
void CpuKernels::gather_indexer_keys(const cpu::GatherIndexerKeys& p) {
  cpu::gather_indexer_keys(p);
}
void CpuKernels::mqa_logits_prefill(const cpu::MqaLogitsPrefill& p) { cpu::mqa_logits_prefill(p); }
void CpuKernels::mqa_logits_paged(const cpu::MqaLogitsPaged& p) { cpu::mqa_logits_paged(p); }
void CpuKernels::topk_per_row(const cpu::TopkPerRow& p) { cpu::topk_per_row(p); }
void CpuKernels::fill_short_context(const cpu::FillShortContext& p) { cpu::fill_short_context(p); }
void CpuKernels::global_topk_indices(const cpu::GlobalTopkIndices& p) {
  cpu::global_topk_indices(p);
}
void CpuKernels::rms_norm(const cpu::RmsNorm& p) { cpu::rms_norm(p); }
void CpuKernels::fused_qkv_norm(const cpu::FusedQkvNorm& p) { cpu::fused_qkv_norm(p); }
void CpuKernels::inverse_rope_quant(const cpu::InverseRopeQuant& p) { cpu::inverse_rope_quant(p); }
void CpuKernels::gemm(const cpu::Gemm& p) { cpu::gemm(p); }
void CpuKernels::grouped_projection(const cpu::GroupedProjection& p) { cpu::grouped_projection(p); }
void CpuKernels::gated_mlp(const cpu::GatedMlp& p) { cpu::gated_mlp(p); }
void CpuKernels::token_to_req(const cpu::TokenToReq& p) { cpu::token_to_req(p); }
void CpuKernels::slot_mapping(const cpu::SlotMapping& p) { cpu::slot_mapping(p); }
void CpuKernels::swa_indices(const cpu::SwaIndices& p) { cpu::swa_indices(p); }
void CpuKernels::noncausal_swa_indices(const cpu::NoncausalSwaIndices& p) {
  cpu::noncausal_swa_indices(p);
}
void CpuKernels::compressed_indices(const cpu::CompressedIndices& p) { cpu::compressed_indices(p); }
void CpuKernels::visible_entries(const cpu::VisibleEntries& p) { cpu::visible_entries(p); }
void CpuKernels::expand_table(const cpu::ExpandTable& p) { cpu::expand_table(p); }
void CpuKernels::embed(const cpu::Embed& p) { cpu::embed(p); }
void CpuKernels::spread_copies(const cpu::Copies& shape, const cpu::Bf16* x, cpu::Bf16* residual) {
  cpu::spread_copies(shape, x, residual);
}
void CpuKernels::first_copy(const cpu::Copies& shape, const cpu::Bf16* residual, cpu::Bf16* x) {
  cpu::first_copy(shape, residual, x);
}
void CpuKernels::add_to_copies(const cpu::Copies& shape, const cpu::Bf16* y, cpu::Bf16* residual) {
  cpu::add_to_copies(shape, y, residual);
}
void CpuKernels::mean_of_copies(const cpu::Copies& shape, const cpu::Bf16* residual, cpu::Bf16* x) {
  cpu::mean_of_copies(shape, residual, x);
}
void CpuKernels::select_rows(std::int64_t count, std::int64_t width, const std::int64_t* rows,
                             const cpu::Bf16* x, cpu::Bf16* out) {
  cpu::select_rows(count, width, rows, x, out);
}
void CpuKernels::argmax(const cpu::Argmax& p) { cpu::argmax(p); }
void CpuKernels::markov_bias(const cpu::MarkovBias& p) { cpu::markov_bias(p); }
void CpuKernels::fill_rope_table(const cpu::RopeTable& p) { cpu::fill_rope_table(p); }
void CpuKernels::fill_seeded(const cpu::SeededMatrix& m, cpu::Bf16* out) {
  cpu::fill_seeded(m, out);
}
void CpuKernels::fill_seeded(const cpu::SeededMatrix& m, float* out) { cpu::fill_seeded(m, out); }
void CpuKernels::fill_seeded(const cpu::SeededMatrix& m, cpu::E4m3* out, cpu::Ue8m0* scales) {
  cpu::fill_seeded(m, out, scales);
}
void CpuKernels::fill_seeded_fp4(const cpu::SeededMatrix& m, cpu::Nibbles* out,
                                 cpu::Ue8m0* scales) {
  cpu::fill_seeded_fp4(m, out, scales);
}

}  // namespace warmgate::kernels
