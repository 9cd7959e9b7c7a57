#include "kernels/cuda/cuda_kernels.h"

#include "kernels/cuda/attention/sparse_decode.h"
#include "kernels/cuda/attention/sparse_prefill.h"
#include "kernels/cuda/basic/compressor.h"
#include "kernels/cuda/basic/decoder.h"
#include "kernels/cuda/basic/gemm.h"
#include "kernels/cuda/basic/markov.h"
#include "kernels/cuda/basic/metadata.h"
#include "kernels/cuda/basic/norm.h"
#include "kernels/cuda/basic/output.h"
#include "kernels/cuda/basic/pages.h"
#include "kernels/cuda/basic/query_key.h"
#include "kernels/cuda/basic/rope.h"
#include "kernels/cuda/basic/seeded.h"
#include "kernels/cuda/indexer/logits.h"
#include "kernels/cuda/indexer/quant.h"
#include "kernels/cuda/indexer/topk.h"

namespace warmgate::kernels::cuda {

namespace {

template <class Params>
void checked_run(const Params& p, const Launch& launch) {
  if (const Reason reason = can_run(p, launch)) throw CannotRun(*reason);
  run(p, launch);
}

}  // namespace

void CudaKernels::synchronize() {
  check(cudaStreamSynchronize(launch_.stream), "kernels of this stream");
}

void CudaKernels::insert_ds_mla(const cpu::InsertDsMla& p) { checked_run(p, launch_); }
void CudaKernels::dequant_gather(const cpu::DequantGather& p) { checked_run(p, launch_); }
void CudaKernels::qnorm_rope_insert(const cpu::QNormRopeInsert& p) { checked_run(p, launch_); }
void CudaKernels::pad_q(const cpu::PadQ& p) { checked_run(p, launch_); }
void CudaKernels::save_partial_states(const cpu::SavePartialStates& p) { checked_run(p, launch_); }
void CudaKernels::compress_window(const cpu::CompressWindow& p) { checked_run(p, launch_); }
void CudaKernels::indexer_quant(const cpu::IndexerQuant& p) { checked_run(p, launch_); }
void CudaKernels::gather_indexer_keys(const cpu::GatherIndexerKeys& p) { checked_run(p, launch_); }
void CudaKernels::mqa_logits_prefill(const cpu::MqaLogitsPrefill& p) { checked_run(p, launch_); }
void CudaKernels::mqa_logits_paged(const cpu::MqaLogitsPaged& p) { checked_run(p, launch_); }
void CudaKernels::topk_per_row(const cpu::TopkPerRow& p) { checked_run(p, launch_); }
void CudaKernels::fill_short_context(const cpu::FillShortContext& p) { checked_run(p, launch_); }
void CudaKernels::global_topk_indices(const cpu::GlobalTopkIndices& p) { checked_run(p, launch_); }
void CudaKernels::sparse_prefill(const cpu::SparsePrefill& p) { checked_run(p, launch_); }
void CudaKernels::sparse_decode(const cpu::SparseDecode& p) { checked_run(p, launch_); }
void CudaKernels::rms_norm(const cpu::RmsNorm& p) { checked_run(p, launch_); }
void CudaKernels::fused_qkv_norm(const cpu::FusedQkvNorm& p) { checked_run(p, launch_); }
void CudaKernels::inverse_rope_quant(const cpu::InverseRopeQuant& p) { checked_run(p, launch_); }
void CudaKernels::gemm(const cpu::Gemm& p) { checked_run(p, launch_); }
void CudaKernels::grouped_projection(const cpu::GroupedProjection& p) { checked_run(p, launch_); }
void CudaKernels::gated_mlp(const cpu::GatedMlp& p) { checked_run(p, launch_); }
void CudaKernels::token_to_req(const cpu::TokenToReq& p) { checked_run(p, launch_); }
void CudaKernels::slot_mapping(const cpu::SlotMapping& p) { checked_run(p, launch_); }
void CudaKernels::swa_indices(const cpu::SwaIndices& p) { checked_run(p, launch_); }
void CudaKernels::noncausal_swa_indices(const cpu::NoncausalSwaIndices& p) {
  checked_run(p, launch_);
}
void CudaKernels::compressed_indices(const cpu::CompressedIndices& p) { checked_run(p, launch_); }
void CudaKernels::visible_entries(const cpu::VisibleEntries& p) { checked_run(p, launch_); }
void CudaKernels::expand_table(const cpu::ExpandTable& p) { checked_run(p, launch_); }
void CudaKernels::embed(const cpu::Embed& p) { checked_run(p, launch_); }
void CudaKernels::spread_copies(const cpu::Copies& shape, const cpu::Bf16* x, cpu::Bf16* residual) {
  cuda::spread_copies(shape, x, residual, launch_);
}
void CudaKernels::first_copy(const cpu::Copies& shape, const cpu::Bf16* residual, cpu::Bf16* x) {
  cuda::first_copy(shape, residual, x, launch_);
}
void CudaKernels::add_to_copies(const cpu::Copies& shape, const cpu::Bf16* y, cpu::Bf16* residual) {
  cuda::add_to_copies(shape, y, residual, launch_);
}
void CudaKernels::mean_of_copies(const cpu::Copies& shape, const cpu::Bf16* residual,
                                 cpu::Bf16* x) {
  cuda::mean_of_copies(shape, residual, x, launch_);
}
void CudaKernels::select_rows(std::int64_t count, std::int64_t width, const std::int64_t* rows,
                              const cpu::Bf16* x, cpu::Bf16* out) {
  cuda::select_rows(count, width, rows, x, out, launch_);
}
void CudaKernels::argmax(const cpu::Argmax& p) { checked_run(p, launch_); }
void CudaKernels::markov_bias(const cpu::MarkovBias& p) { checked_run(p, launch_); }
void CudaKernels::fill_rope_table(const cpu::RopeTable& p) { checked_run(p, launch_); }
void CudaKernels::fill_seeded(const cpu::SeededMatrix& m, cpu::Bf16* out) {
  cuda::fill_seeded(m, out, launch_);
}
void CudaKernels::fill_seeded(const cpu::SeededMatrix& m, float* out) {
  cuda::fill_seeded(m, out, launch_);
}
void CudaKernels::fill_seeded(const cpu::SeededMatrix& m, cpu::E4m3* out, cpu::Ue8m0* scales) {
  cuda::fill_seeded(m, out, scales, launch_);
}
void CudaKernels::fill_seeded_fp4(const cpu::SeededMatrix& m, cpu::Nibbles* out,
                                  cpu::Ue8m0* scales) {
  cuda::fill_seeded_fp4(m, out, scales, launch_);
}

}  // namespace warmgate::kernels::cuda
