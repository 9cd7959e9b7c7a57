#include "kernels/cuda/indexer/logits_start.cuh"

namespace warmgate::kernels::cuda::logits {

template void start_hopper<4, false, Pace::kHalves>(const Params&, const CUtensorMap&,
                                                    const CUtensorMap&, int, cudaStream_t);

}  // namespace warmgate::kernels::cuda::logits
