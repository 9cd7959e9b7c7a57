#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/decoder.h"
#include "kernels/cuda/basic/gemm.h"
#include "kernels/cuda/basic/markov.h"

namespace warmgate::kernels::cuda {
namespace {

__global__ void base_kernel(cpu::MarkovBias p) {
  const int64_t b = blockIdx.y;
  const int64_t row = min(b * p.per_request + p.position, p.base_rows - 1);
  for (int64_t v = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; v < p.vocab;
       v += static_cast<int64_t>(gridDim.x) * blockDim.x)
    p.logits[b * p.logits_stride + v] += p.base[row * p.base_stride + v];
}

std::size_t row_bytes(const cpu::MarkovBias& p) {
  return static_cast<std::size_t>(blocks_for(p.tokens * p.rank * 2, 256) * 256);
}

}  // namespace

Reason can_run(const cpu::MarkovBias& p, const Launch& launch) {
  return first_of(refuse(p.w1.type != cpu::WeightType::kBf16 || p.w2.type != cpu::WeightType::kBf16,
                         "markov head: weights are not bf16"),
                  refuse(p.tokens > 65535, "markov head: more than 65535 tokens"),
                  refuse(launch.scratch_bytes < row_bytes(p), "markov head: too little scratch"));
}

void run(const cpu::MarkovBias& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  auto* low = static_cast<cpu::Bf16*>(launch.scratch);
  run(cpu::Embed{p.tokens, p.rank, p.vocab, 0, p.previous, static_cast<const cpu::Bf16*>(p.w1.data),
                 low},
      launch);
  Launch inner = launch;
  inner.scratch = static_cast<char*>(launch.scratch) + row_bytes(p);
  inner.scratch_bytes -= row_bytes(p);
  cpu::Gemm g;
  g.tokens = p.tokens;
  g.x = low;
  g.w = p.w2;
  g.y_type = cpu::OutputType::kFp32;
  g.y = p.logits;
  g.y_stride = p.logits_stride;
  run(g, inner);
  if (p.base == nullptr) return;
  const dim3 grid(static_cast<unsigned>(std::min<std::int64_t>(blocks_for(p.vocab, 256), 512)),
                  static_cast<unsigned>(p.tokens));
  base_kernel<<<grid, 256, 0, launch.stream>>>(p);
  check_launch("markov_bias");
}

}  // namespace warmgate::kernels::cuda
