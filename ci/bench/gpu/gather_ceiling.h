// The best that moving bytes does on this machine: one behind the other, and rows by index.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace warmgate::bench {

/// out[i,:] = table[index[i],:], rows of 576 bytes aligned to 16.
void gather_rows(const void* table, const std::int32_t* index, std::int64_t rows, void* out,
                 cudaStream_t stream);
/// to = from, `bytes` a multiple of 16, by a kernel.
void copy_bytes(const void* from, std::size_t bytes, void* to, cudaStream_t stream);
/// index[i] = a pseudo-random permutation of 0..rows-1, rows a power of two, other for each seed.
void fill_permutation(std::int32_t* index, std::int64_t rows, std::uint32_t seed,
                      cudaStream_t stream);

}  // namespace warmgate::bench
