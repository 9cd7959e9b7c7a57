#include "ci/bench/gpu/gather_ceiling.h"

#include "kernels/cuda/launch.h"

namespace warmgate::bench {
namespace {

constexpr int kPieces = 36;  // of 16 bytes
constexpr int kThreads = 288, kRowsAtOnce = kThreads / kPieces * 4;

// Eight rows side by side, four of those in flight a thread.
__global__ void __launch_bounds__(kThreads)
    gather_kernel(const uint4* table, const int32_t* index, int64_t rows, uint4* out) {
  const int piece = threadIdx.x % kPieces, lane = threadIdx.x / kPieces;
  const int64_t first = blockIdx.x * static_cast<int64_t>(kRowsAtOnce) + lane;
  constexpr int kStep = kThreads / kPieces;
  int32_t from[4];
  uint4 v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) from[i] = first + i * kStep < rows ? index[first + i * kStep] : 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) v[i] = __ldg(table + static_cast<int64_t>(from[i]) * kPieces + piece);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (first + i * kStep < rows) __stcs(out + (first + i * kStep) * kPieces + piece, v[i]);
  }
}

// Four times 16 bytes in flight a thread, each read and written once.
__global__ void __launch_bounds__(256) copy_kernel(const uint4* from, int64_t pieces, uint4* to) {
  const int64_t first = blockIdx.x * int64_t{1024} + threadIdx.x;
  uint4 v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + 256 * i < pieces) v[i] = __ldcs(from + first + 256 * i);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + 256 * i < pieces) __stcs(to + first + 256 * i, v[i]);
}

__global__ void permutation_kernel(int32_t* index, int64_t rows, uint32_t seed) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= rows) return;
  // Odd multipliers and shifted xors permute the numbers below a power of two.
  const uint32_t mask = static_cast<uint32_t>(rows - 1);
  int bits = 0;
  while ((1ll << bits) < rows) ++bits;
  uint32_t x = static_cast<uint32_t>(i);
  for (int round = 0; round < 3; ++round) {
    x = (x * 0x9E3779B1u + seed + 0x85EBCA6Bu * round) & mask;
    x ^= x >> (bits / 2 + 1);
  }
  index[i] = static_cast<int32_t>(x);
}

}  // namespace

void gather_rows(const void* table, const std::int32_t* index, std::int64_t rows, void* out,
                 cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((rows + kRowsAtOnce - 1) / kRowsAtOnce);
  gather_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const uint4*>(table), index, rows,
                                                 static_cast<uint4*>(out));
  kernels::cuda::check_launch("gather rows");
}

void copy_bytes(const void* from, std::size_t bytes, void* to, cudaStream_t stream) {
  const auto pieces = static_cast<std::int64_t>(bytes / 16);
  const auto blocks = static_cast<unsigned>((pieces + 1023) / 1024);
  copy_kernel<<<blocks, 256, 0, stream>>>(static_cast<const uint4*>(from), pieces,
                                          static_cast<uint4*>(to));
  kernels::cuda::check_launch("copy");
}

void fill_permutation(std::int32_t* index, std::int64_t rows, std::uint32_t seed,
                      cudaStream_t stream) {
  permutation_kernel<<<static_cast<unsigned>((rows + 255) / 256), 256, 0, stream>>>(index, rows,
                                                                                    seed);
  kernels::cuda::check_launch("permutation");
}

}  // namespace warmgate::bench
