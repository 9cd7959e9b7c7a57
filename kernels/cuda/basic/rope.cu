// Frequencies come from the host, in double; angles, sines and cosines are double and rounded once.
#include "kernels/cpu/rope_frequencies.h"
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/rope.h"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kThreads = 256;
struct Frequencies {
  double of[cpu::kRopePairs];
};

__global__ void rope_kernel(int64_t rows, __grid_constant__ const Frequencies f, float* table) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  const int64_t row = i / cpu::kRopePairs;
  const int pair = static_cast<int>(i % cpu::kRopePairs);
  if (row >= rows) return;
  double sine, cosine;
  sincos(__dmul_rn(static_cast<double>(row), f.of[pair]), &sine, &cosine);
  table[row * cpu::kRopeDims + pair] = static_cast<float>(cosine);
  table[row * cpu::kRopeDims + cpu::kRopePairs + pair] = static_cast<float>(sine);
}

}  // namespace

Reason can_run(const cpu::RopeTable&, const Launch&) { return {}; }
void run(const cpu::RopeTable& p, const Launch& launch) {
  if (p.rows <= 0) return;
  const auto frequencies = cpu::rope_frequencies(p);
  Frequencies f{};
  std::copy(frequencies.begin(), frequencies.end(), f.of);
  const auto blocks = static_cast<unsigned>(blocks_for(p.rows * cpu::kRopePairs, kThreads));
  rope_kernel<<<blocks, kThreads, 0, launch.stream>>>(p.rows, f, p.table);
  check_launch("fill_rope_table");
}

}  // namespace warmgate::kernels::cuda
