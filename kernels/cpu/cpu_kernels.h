// Device cpu behind the interface of all devices: every call runs at once, on the caller's thread.
#pragma once

#include "kernels/kernels.h"

namespace warmgate::kernels {

/// The engine derives from it to share rows out among threads.
class CpuKernels : public Kernels {
 public:
  const char* device() const override { return "cpu"; }
  void synchronize() override {}

  void insert_ds_mla(const cpu::InsertDsMla& p) override;
  void dequant_gather(const cpu::DequantGather& p) override;
  void qnorm_rope_insert(const cpu::QNormRopeInsert& p) override;
  void pad_q(const cpu::PadQ& p) override;
  void save_partial_states(const cpu::SavePartialStates& p) override;
  void compress_window(const cpu::CompressWindow& p) override;

  void indexer_quant(const cpu::IndexerQuant& p) override;
  void gather_indexer_keys(const cpu::GatherIndexerKeys& p) override;
  void mqa_logits_prefill(const cpu::MqaLogitsPrefill& p) override;
  void mqa_logits_paged(const cpu::MqaLogitsPaged& p) override;
  void topk_per_row(const cpu::TopkPerRow& p) override;
  void fill_short_context(const cpu::FillShortContext& p) override;
  void global_topk_indices(const cpu::GlobalTopkIndices& p) override;

  void sparse_prefill(const cpu::SparsePrefill& p) override;
  void sparse_decode(const cpu::SparseDecode& p) override;

  void rms_norm(const cpu::RmsNorm& p) override;
  void fused_qkv_norm(const cpu::FusedQkvNorm& p) override;
  void inverse_rope_quant(const cpu::InverseRopeQuant& p) override;
  void gemm(const cpu::Gemm& p) override;
  void grouped_projection(const cpu::GroupedProjection& p) override;
  void gated_mlp(const cpu::GatedMlp& p) override;

  void token_to_req(const cpu::TokenToReq& p) override;
  void slot_mapping(const cpu::SlotMapping& p) override;
  void swa_indices(const cpu::SwaIndices& p) override;
  void noncausal_swa_indices(const cpu::NoncausalSwaIndices& p) override;
  void compressed_indices(const cpu::CompressedIndices& p) override;
  void visible_entries(const cpu::VisibleEntries& p) override;
  void expand_table(const cpu::ExpandTable& p) override;

  void embed(const cpu::Embed& p) override;
  void spread_copies(const cpu::Copies& shape, const cpu::Bf16* x, cpu::Bf16* residual) override;
  void first_copy(const cpu::Copies& shape, const cpu::Bf16* residual, cpu::Bf16* x) override;
  void add_to_copies(const cpu::Copies& shape, const cpu::Bf16* y, cpu::Bf16* residual) override;
  void mean_of_copies(const cpu::Copies& shape, const cpu::Bf16* residual, cpu::Bf16* x) override;
  void select_rows(std::int64_t count, std::int64_t width, const std::int64_t* rows,
                   const cpu::Bf16* x, cpu::Bf16* out) override;
  void argmax(const cpu::Argmax& p) override;
  void markov_bias(const cpu::MarkovBias& p) override;

  void fill_rope_table(const cpu::RopeTable& p) override;
  void fill_seeded(const cpu::SeededMatrix& m, cpu::Bf16* out) override;
  void fill_seeded(const cpu::SeededMatrix& m, float* out) override;
  void fill_seeded(const cpu::SeededMatrix& m, cpu::E4m3* out, cpu::Ue8m0* scales) override;
  void fill_seeded_fp4(const cpu::SeededMatrix& m, cpu::Nibbles* out, cpu::Ue8m0* scales) override;
};

}  // namespace warmgate::kernels
