// Few tokens: bf16 weights.
#include "kernels/cuda/basic/gemm_mma.cuh"

namespace warmgate::kernels::cuda {

void launch_mma_bf16(MmaParams p, int row_tiles, int warps, const Launch& launch) {
  launch_mma<cpu::WeightType::kBf16, false>(p, row_tiles, warps, launch);
}

}  // namespace warmgate::kernels::cuda
