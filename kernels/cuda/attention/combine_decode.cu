// The last step of a decode whose keys were cut into groups: a block a head joins the groups' sums.
#include "kernels/cuda/attention/sparse_decode_keys.cuh"
#include "kernels/cuda/attention/sparse_decode_paths.h"
#include "kernels/cuda/formats.cuh"
#include "kernels/cuda/hopper.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kDim = 512, kTileHeads = 64, kThreads = kDim / 4;
constexpr float kInfinity = __builtin_huge_valf();

// sums [units·groups,64,512], tops and totals [units·groups,64]: see decode::Parts.
__global__ void __launch_bounds__(kThreads)
    combine_kernel(const __grid_constant__ DecodeParams p, int groups, const float* sums,
                   const float* tops, const float* totals) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  wait_for_previous();  // the groups' sums; past the L1, which may be older than they are
#endif
  const int64_t token = blockIdx.x;
  const int head = static_cast<int>(blockIdx.y);
  const int tiles = (p.heads + kTileHeads - 1) / kTileHeads;
  const int64_t first = (token * tiles + head / kTileHeads) * groups;
  const auto at = [&](int g) { return (first + g) * kTileHeads + head % kTileHeads; };
  float top = -kInfinity, total = 0;
  for (int g = 0; g < groups; ++g) top = fmaxf(top, __ldcg(tops + at(g)));
  const float reference = top == -kInfinity ? 0.0F : top;
  float4 sum = {};
#pragma unroll 4
  for (int g = 0; g < groups; ++g) {
    const float group_total = __ldcg(totals + at(g));
    if (group_total == 0.0F) continue;  // a group without keys
    const float weight = exp2f(__ldcg(tops + at(g)) - reference);
    total += weight * group_total;
    const float4 part = __ldcg(reinterpret_cast<const float4*>(sums + at(g) * kDim) + threadIdx.x);
    sum.x += part.x * weight, sum.y += part.y * weight;
    sum.z += part.z * weight, sum.w += part.w * weight;
  }
  const float sink = p.sink[head];
  const bool none = total == 0.0F || sink == kInfinity;
  const float inverse = none ? 0.0F : 1.0F / (total + exp2f(sink * 1.4426950408889634F - top));
  uint2 out = {};
  if (inverse != 0.0F) {  // not a product with 0: sums may be infinite
    out.x = to_bf16(sum.x * inverse) | static_cast<uint32_t>(to_bf16(sum.y * inverse)) << 16;
    out.y = to_bf16(sum.z * inverse) | static_cast<uint32_t>(to_bf16(sum.w * inverse)) << 16;
  }
  reinterpret_cast<uint2*>(p.out + (token * p.heads + head) * kDim)[threadIdx.x] = out;
}

}  // namespace

void combine_decode(const cpu::SparseDecode& p, const Launch& launch, int groups, const float* sums,
                    const float* tops, const float* totals) {
  // Its blocks may be there before the first kernel ends; run only on architecture 90.
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(p.tokens), static_cast<unsigned>(p.heads));
  config.blockDim = dim3(kThreads);
  config.stream = launch.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, combine_kernel, decode_params(p), groups, sums, tops, totals),
        "sparse_decode (combine)");
}

}  // namespace warmgate::kernels::cuda
