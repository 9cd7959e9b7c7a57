// Random contents for benchmark inputs, written where they are read: copies of gigabytes from the
// host would take longer than all measurements.
#include <stdint.h>

#include "ci/bench/gpu/bench.h"

namespace warmgate::bench {
namespace {

__device__ uint32_t mix(uint64_t seed, uint64_t i) {
  uint64_t h = (seed + i) * 0x9E3779B97F4A7C15ull;
  h ^= h >> 31;
  h *= 0xBF58476D1CE4E5B9ull;
  h ^= h >> 29;
  return static_cast<uint32_t>(h >> 16);
}

__global__ void bf16_kernel(uint32_t* out, uint64_t words, uint64_t seed) {
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x; i < words;
       i += step) {
    // Sign and mantissa are random, the exponent is one of 2^-3 … 2^0.
    const uint32_t h = mix(seed, i);
    const uint32_t low = (h & 0x807Fu) | ((124u + ((h >> 8) & 3u)) << 7);
    const uint32_t high = ((h >> 16) & 0x807Fu) | ((124u + ((h >> 24) & 3u)) << 7);
    out[i] = low | high << 16;
  }
}

__global__ void e4m3_kernel(uint32_t* out, uint64_t words, uint64_t seed) {
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x; i < words;
       i += step) {
    uint32_t h = mix(seed, i) ^ (mix(seed + 77, i) << 7);
    // Clear the highest exponent bit: no NaN, magnitudes up to 1.875.
    out[i] = h & 0xBFBFBFBFu;
  }
}

}  // namespace

void Memory::fill_bf16(std::uint64_t seed) {
  bf16_kernel<<<1024, 256>>>(as<uint32_t>(), bytes_ / 4, seed);
  kernels::cuda::check_launch("fill");
}
void Memory::fill_e4m3(std::uint64_t seed) {
  e4m3_kernel<<<1024, 256>>>(as<uint32_t>(), bytes_ / 4, seed);
  kernels::cuda::check_launch("fill");
}

}  // namespace warmgate::bench
