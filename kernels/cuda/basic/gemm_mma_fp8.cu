// Few tokens: fp8 weights.
#include "kernels/cuda/basic/gemm_mma.cuh"

namespace warmgate::kernels::cuda {

void launch_mma_fp8(MmaParams p, int row_tiles, int warps, const Launch& launch) {
  launch_mma<cpu::WeightType::kFp8, false>(p, row_tiles, warps, launch);
}

}  // namespace warmgate::kernels::cuda
