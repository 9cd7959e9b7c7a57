#include "harness/engine/ops/shared_kernels.h"

#include "harness/engine/ops/cpu_threads.h"
#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

namespace {

namespace cpu = kernels::cpu;
using ops::host::share_rows;
using Base = kernels::CpuKernels;

/// Rows begin..end-1; begin is a multiple of 128.
cpu::Weights rows_of(const cpu::Weights& w, std::int64_t begin, std::int64_t end) {
  cpu::Weights out = w;
  const std::int64_t bits = w.type == cpu::WeightType::kFp32   ? 32
                            : w.type == cpu::WeightType::kBf16 ? 16
                            : w.type == cpu::WeightType::kFp8  ? 8
                                                               : 4;
  out.data = static_cast<const char*>(w.data) + begin * w.columns * bits / 8;
  if (w.scales != nullptr) {
    out.scales += bits == 8 ? begin / 128 * ceil_div(w.columns, 128) : begin * w.columns / 32;
  }
  out.rows = end - begin;
  return out;
}
}  // namespace

void SharedKernels::sparse_prefill(const cpu::SparsePrefill& p) {
  // Padding heads cost next to nothing; eight are a guess at the real ones.
  share_rows(p.tokens, 4, p.tokens * p.width * 8 * 2 * cpu::kHeadDim,
             [&](std::int64_t begin, std::int64_t end) {
               cpu::SparsePrefill part = p;
               part.tokens = end - begin;
               part.q += begin * p.heads * cpu::kHeadDim;
               part.out += begin * p.heads * cpu::kHeadDim;
               part.indices += begin * p.width;
               part.lens += begin;
               Base::sparse_prefill(part);
             });
}

void SharedKernels::mqa_logits_prefill(const cpu::MqaLogitsPrefill& p) {
  const std::int64_t q_row = p.heads * cpu::index_value_bytes(p.format);
  share_rows(p.tokens, 8, p.tokens * p.logits_stride * p.heads * cpu::kIndexDim,
             [&](std::int64_t begin, std::int64_t end) {
               cpu::MqaLogitsPrefill part = p;
               part.tokens = end - begin;
               part.q += begin * q_row;
               if (p.q_scales != nullptr)
                 part.q_scales += begin * p.heads * (cpu::kIndexDim / cpu::kMxRun);
               part.w += begin * p.heads;
               part.key_start += begin;
               part.key_end += begin;
               part.logits += begin * p.logits_stride;
               Base::mqa_logits_prefill(part);
             });
}

void SharedKernels::gemm(const cpu::Gemm& p) {
  const std::int64_t element = p.y_type == cpu::OutputType::kFp32 ? 4 : 2;
  // Outputs are shared out, so that each weight is decoded once. A block of scales starts every
  // 128.
  share_rows(p.w.rows, 128, p.tokens * p.w.rows * p.w.columns,
             [&](std::int64_t begin, std::int64_t end) {
               cpu::Gemm part = p;
               part.w = rows_of(p.w, begin, end);
               part.y = static_cast<char*>(p.y) + begin * element;
               if (part.y_stride == 0) part.y_stride = p.w.rows;
               Base::gemm(part);
             });
}

void SharedKernels::grouped_projection(const cpu::GroupedProjection& p) {
  const std::int64_t scales = ceil_div(p.inputs, 128);
  share_rows(p.tokens, 8, p.tokens * p.w.rows * p.w.columns,
             [&](std::int64_t begin, std::int64_t end) {
               cpu::GroupedProjection part = p;
               part.tokens = end - begin;
               part.x += begin * p.groups * p.inputs;
               part.x_scales += begin * p.groups * scales;
               part.z += begin * p.groups * p.rank;
               Base::grouped_projection(part);
             });
}

void SharedKernels::gated_mlp(const cpu::GatedMlp& p) {
  share_rows(p.tokens, 8, p.tokens * (p.w13.rows * p.w13.columns + p.w2.rows * p.w2.columns),
             [&](std::int64_t begin, std::int64_t end) {
               cpu::GatedMlp part = p;
               part.tokens = end - begin;
               part.x += begin * p.w13.columns;
               part.y += begin * p.w2.rows;
               Base::gated_mlp(part);
             });
}

}  // namespace warmgate::engine
