// Few tokens: fp4 weights.
#include "kernels/cuda/basic/gemm_mma.cuh"

namespace warmgate::kernels::cuda {

void launch_mma_fp4(MmaParams p, int row_tiles, int warps, const Launch& launch) {
  launch_mma<cpu::WeightType::kFp4, false>(p, row_tiles, warps, launch);
}

}  // namespace warmgate::kernels::cuda
