// All kernels of one device behind one interface: the engine's ops and the measurements of
// kernels/numerics call them without knowing where they run. Parameters are the plain structs of
// kernels/cpu/*.h, which say shapes, dtypes, strides and rounding points; their pointers are of the
// device's memory. Calls of one object run in the order they are made; results are there for the
// host after synchronize().
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/cpu/compressor.h"
#include "kernels/cpu/decoder.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/indexer.h"
#include "kernels/cpu/metadata.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/output_projection.h"
#include "kernels/cpu/pages.h"
#include "kernels/cpu/query_key.h"
#include "kernels/cpu/rope.h"
#include "kernels/cpu/seeded.h"
#include "kernels/cpu/sparse_attention.h"
#include "kernels/cpu/topk.h"

namespace warmgate::kernels {

/// The parameters are outside what the device's kernel can do; the message says which and why.
class CannotRun : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Kernels {
 public:
  virtual ~Kernels() = default;
  /// "cpu" or "cuda".
  virtual const char* device() const = 0;
  /// Waits for everything called so far. Throws what a kernel failed with.
  virtual void synchronize() = 0;

  virtual void insert_ds_mla(const cpu::InsertDsMla& p) = 0;
  virtual void dequant_gather(const cpu::DequantGather& p) = 0;
  virtual void qnorm_rope_insert(const cpu::QNormRopeInsert& p) = 0;
  virtual void pad_q(const cpu::PadQ& p) = 0;
  virtual void save_partial_states(const cpu::SavePartialStates& p) = 0;
  virtual void compress_window(const cpu::CompressWindow& p) = 0;

  virtual void indexer_quant(const cpu::IndexerQuant& p) = 0;
  virtual void gather_indexer_keys(const cpu::GatherIndexerKeys& p) = 0;
  virtual void mqa_logits_prefill(const cpu::MqaLogitsPrefill& p) = 0;
  virtual void mqa_logits_paged(const cpu::MqaLogitsPaged& p) = 0;
  virtual void topk_per_row(const cpu::TopkPerRow& p) = 0;
  virtual void fill_short_context(const cpu::FillShortContext& p) = 0;
  virtual void global_topk_indices(const cpu::GlobalTopkIndices& p) = 0;

  virtual void sparse_prefill(const cpu::SparsePrefill& p) = 0;
  virtual void sparse_decode(const cpu::SparseDecode& p) = 0;

  virtual void rms_norm(const cpu::RmsNorm& p) = 0;
  virtual void fused_qkv_norm(const cpu::FusedQkvNorm& p) = 0;
  virtual void inverse_rope_quant(const cpu::InverseRopeQuant& p) = 0;
  virtual void gemm(const cpu::Gemm& p) = 0;
  virtual void grouped_projection(const cpu::GroupedProjection& p) = 0;
  virtual void gated_mlp(const cpu::GatedMlp& p) = 0;

  virtual void token_to_req(const cpu::TokenToReq& p) = 0;
  virtual void slot_mapping(const cpu::SlotMapping& p) = 0;
  virtual void swa_indices(const cpu::SwaIndices& p) = 0;
  virtual void noncausal_swa_indices(const cpu::NoncausalSwaIndices& p) = 0;
  virtual void compressed_indices(const cpu::CompressedIndices& p) = 0;
  virtual void visible_entries(const cpu::VisibleEntries& p) = 0;
  virtual void expand_table(const cpu::ExpandTable& p) = 0;

  virtual void embed(const cpu::Embed& p) = 0;
  virtual void spread_copies(const cpu::Copies& shape, const cpu::Bf16* x, cpu::Bf16* residual) = 0;
  virtual void first_copy(const cpu::Copies& shape, const cpu::Bf16* residual, cpu::Bf16* x) = 0;
  virtual void add_to_copies(const cpu::Copies& shape, const cpu::Bf16* y, cpu::Bf16* residual) = 0;
  virtual void mean_of_copies(const cpu::Copies& shape, const cpu::Bf16* residual,
                              cpu::Bf16* x) = 0;
  /// `rows` is of the host's memory on every device.
  virtual void select_rows(std::int64_t count, std::int64_t width, const std::int64_t* rows,
                           const cpu::Bf16* x, cpu::Bf16* out) = 0;
  virtual void argmax(const cpu::Argmax& p) = 0;
  virtual void markov_bias(const cpu::MarkovBias& p) = 0;

  virtual void fill_rope_table(const cpu::RopeTable& p) = 0;
  virtual void fill_seeded(const cpu::SeededMatrix& m, cpu::Bf16* out) = 0;
  virtual void fill_seeded(const cpu::SeededMatrix& m, float* out) = 0;
  virtual void fill_seeded(const cpu::SeededMatrix& m, cpu::E4m3* out, cpu::Ue8m0* scales) = 0;
  virtual void fill_seeded_fp4(const cpu::SeededMatrix& m, cpu::Nibbles* out,
                               cpu::Ue8m0* scales) = 0;
};

}  // namespace warmgate::kernels
