// Value and column packed so that the largest key is the largest value at the lowest column; rows
// are cut into parts whose keys a second kernel compares.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/decoder.h"
#include "kernels/cuda/rows.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kThreads = 512, kColumnsAtLeast = 8192;

// 0: nothing that wins (NaN, -inf).
__device__ __forceinline__ uint64_t key_of(float value, uint32_t column) {
  if (!(value > -INFINITY)) return 0;
  const uint32_t bits = __float_as_uint(value + 0.0f);  // -0 equals 0
  const uint32_t ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<uint64_t>(ordered) << 32 | (0xFFFFFFFFu - column);
}

__device__ uint64_t largest_of_block(uint64_t key) {
  __shared__ uint64_t keys[kThreads / 32];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) key = max(key, __shfl_xor_sync(kWholeWarp, key, step));
  if (threadIdx.x % 32 == 0) keys[threadIdx.x / 32] = key;
  __syncthreads();
  key = threadIdx.x < blockDim.x / 32 ? keys[threadIdx.x] : 0;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) key = max(key, __shfl_xor_sync(kWholeWarp, key, step));
  return key;
}

__device__ void write_choice(const cpu::Argmax& p, int64_t t, uint64_t key) {
  const uint32_t column = key == 0 ? 0 : 0xFFFFFFFFu - static_cast<uint32_t>(key);
  p.ids[t] = p.first_id + column;
  if (p.best != nullptr) p.best[t] = key == 0 ? -INFINITY : p.logits[t * p.stride + column];
}

__global__ void __launch_bounds__(kThreads) argmax_kernel(cpu::Argmax p, uint64_t* keys) {
  const int64_t t = blockIdx.x;
  const float* logits = p.logits + t * p.stride;
  const uint32_t width = static_cast<uint32_t>(p.width), parts = gridDim.y;
  const uint32_t part = (width + parts - 1) / parts;
  const uint32_t begin = blockIdx.y * part, end = min(begin + part, width);
  uint64_t key = 0;
#pragma unroll 8
  for (uint32_t c = begin + threadIdx.x; c < end; c += kThreads)
    key = max(key, key_of(logits[c], c));
  key = largest_of_block(key);
  if (threadIdx.x != 0) return;
  if (parts == 1) {
    write_choice(p, t, key);
  } else {
    keys[t * parts + blockIdx.y] = key;
  }
}

__global__ void last_kernel(cpu::Argmax p, const uint64_t* keys, uint32_t parts) {
  const int64_t t = blockIdx.x;
  uint64_t key = 0;
  for (uint32_t i = threadIdx.x; i < parts; i += blockDim.x) key = max(key, keys[t * parts + i]);
  key = largest_of_block(key);
  if (threadIdx.x == 0) write_choice(p, t, key);
}

}  // namespace

Reason can_run(const cpu::Argmax& p, const Launch&) {
  return refuse(p.width > 0xFFFFFFFFll, "argmax: more than 2^32 columns");
}
void run(const cpu::Argmax& p, const Launch& launch) {
  if (p.tokens <= 0) return;
  const std::int64_t wanted = processors(launch) * 2 / std::max<std::int64_t>(p.tokens, 1);
  std::int64_t parts = std::clamp<std::int64_t>(wanted, 1, blocks_for(p.width, kColumnsAtLeast));
  parts = std::clamp<std::int64_t>(parts, 1, 1024);
  if (launch.scratch == nullptr || !aligned(launch.scratch, 8) ||
      static_cast<std::size_t>(p.tokens * parts * 8) > launch.scratch_bytes)
    parts = 1;
  const dim3 grid(static_cast<unsigned>(p.tokens), static_cast<unsigned>(parts));
  auto* keys = static_cast<uint64_t*>(launch.scratch);
  argmax_kernel<<<grid, kThreads, 0, launch.stream>>>(p, keys);
  if (parts > 1)
    last_kernel<<<grid.x, 32, 0, launch.stream>>>(p, keys, static_cast<uint32_t>(parts));
  check_launch("argmax");
}

}  // namespace warmgate::kernels::cuda
