// Few tokens: fp8 weights and inputs.
#include "kernels/cuda/basic/gemm_mma.cuh"

namespace warmgate::kernels::cuda {

void launch_mma_grouped(MmaParams p, int row_tiles, int warps, const Launch& launch) {
  launch_mma<cpu::WeightType::kFp8, true>(p, row_tiles, warps, launch);
}

}  // namespace warmgate::kernels::cuda
