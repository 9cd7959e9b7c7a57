// Kernels of the host, with the large ones shared out to its cores (cpu_threads.h).
#pragma once

#include "kernels/cpu/cpu_kernels.h"

namespace warmgate::engine {

class SharedKernels final : public kernels::CpuKernels {
 public:
  void sparse_prefill(const kernels::cpu::SparsePrefill& p) override;
  void mqa_logits_prefill(const kernels::cpu::MqaLogitsPrefill& p) override;
  void gemm(const kernels::cpu::Gemm& p) override;
  void grouped_projection(const kernels::cpu::GroupedProjection& p) override;
  void gated_mlp(const kernels::cpu::GatedMlp& p) override;
};

}  // namespace warmgate::engine
