// A thread makes eight neighbouring elements of the part, which mostly share one hash. Values come
// from a table of k and j in shared memory, converted as the host converts them.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/seeded.h"
#include "kernels/cuda/rows.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kThreads = 256, kLevels = 3;
constexpr int64_t kBlock = 128;  // rows and columns that share j
constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;

// splitmix64 (public domain, Vigna).
__device__ __forceinline__ uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
__device__ __forceinline__ uint64_t hash_of(const cpu::SeededMatrix& m, int64_t row,
                                            int64_t group) {
  const uint64_t base = mix(m.key + kGolden * static_cast<uint64_t>(row + 1));
  return mix(base + kGolden * static_cast<uint64_t>(group + 1));
}
__device__ __forceinline__ int level_of(const cpu::SeededMatrix& m, int64_t block_row,
                                        int64_t block_column) {
  if (m.even) return 0;
  const uint64_t place =
      static_cast<uint64_t>(block_row) * 0x1000003u + static_cast<uint64_t>(block_column);
  return static_cast<int>(mix(~m.key + kGolden * (place + 1)) % kLevels);
}
__device__ __forceinline__ int64_t valid_columns(const cpu::SeededMatrix& m) {
  return min(max(m.whole_columns - m.first_column, int64_t{0}), m.columns);
}
// The row of the whole that local row `row` of the part is, or -1.
__device__ __forceinline__ int64_t whole_row(const cpu::SeededMatrix& m, int64_t row) {
  const bool second = row >= m.runs[0].count;
  if (second) row -= m.runs[0].count;
  const int64_t first = second ? m.runs[1].first : m.runs[0].first;
  return row < (second ? m.runs[1].valid : m.runs[0].valid) ? first + row : -1;
}

template <class T>
__device__ T convert(double value);
template <>
__device__ float convert<float>(double value) {
  return static_cast<float>(value);
}
template <>
__device__ uint16_t convert<uint16_t>(double value) {
  return to_bf16(static_cast<float>(value));
}
template <>
__device__ uint8_t convert<uint8_t>(double value) {
  return to_e4m3(static_cast<float>(value));
}

// table[j][byte]: the value that a hash byte stands for under level j.
template <class T>
__device__ void fill_table(T (&table)[kLevels][256], int exponent, double offset) {
  for (int i = threadIdx.x; i < kLevels * 256; i += kThreads) {
    const int byte = i % 256, k = (byte >> 4) + (byte & 15) - 15;
    table[i / 256][byte] = convert<T>(offset + scalbn(static_cast<double>(k), exponent + i / 256));
  }
  __syncthreads();
}

// Calls put(element, hash byte, row and column of the whole) or zero(element) for each element of
// this thread's groups of eight.
template <class Put, class Zero>
__device__ __forceinline__ void each_element(const cpu::SeededMatrix& m, int64_t elements, Put put,
                                             Zero zero) {
  const int64_t valid = valid_columns(m);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t g = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; 8 * g < elements;
       g += step) {
    int64_t local = 8 * g / m.columns, column = 8 * g - local * m.columns;
    int64_t row = whole_row(m, local), group = -1;
    uint64_t hash = 0;
    for (int i = 0; i < 8 && 8 * g + i < elements; ++i, ++column) {
      if (column == m.columns) {
        column = 0;
        row = whole_row(m, ++local);
        group = -1;
      }
      if (row < 0 || column >= valid) {
        zero(8 * g + i, i);
        continue;
      }
      const int64_t whole = column + m.first_column;
      if (whole / 8 != group) {
        group = whole / 8;
        hash = hash_of(m, row, group);
      }
      put(8 * g + i, i, static_cast<int>(hash >> (whole % 8 * 8) & 255u), row, whole, local,
          column);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    fill_kernel(cpu::SeededMatrix m, int64_t elements, T* out) {
  __shared__ T table[kLevels][256];
  fill_table(table, m.exponent, m.offset);
  int64_t block_row = -1, block_column = -1;
  int level = 0;
  each_element(
      m, elements,
      [&](int64_t at, int, int byte, int64_t row, int64_t column, int64_t, int64_t) {
        if (row / kBlock != block_row || column / kBlock != block_column) {
          block_row = row / kBlock, block_column = column / kBlock;
          level = level_of(m, block_row, block_column);
        }
        out[at] = table[level][byte];
      },
      [&](int64_t at, int) { out[at] = T{}; });
}

// The least j of each block of the part: a thread a block.
__global__ void scales_kernel(cpu::SeededMatrix m, int64_t rows, int64_t across, int64_t blocks,
                              uint8_t* scales) {
  const int64_t at = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (at >= blocks) return;
  const int64_t first_row = at / across * kBlock, first_column = at % across * kBlock;
  const int64_t end_row = min(first_row + kBlock, rows);
  const int64_t end_column = min(first_column + kBlock, valid_columns(m));
  int least = kLevels - 1;
  int64_t seen = -1;
  for (int64_t local = first_row; local < end_row && first_column < end_column; ++local) {
    const int64_t row = whole_row(m, local);
    if (row < 0 || row / kBlock == seen) continue;
    seen = row / kBlock;
    const int64_t last = (m.first_column + end_column - 1) / kBlock;
    for (int64_t c = (m.first_column + first_column) / kBlock; c <= last; ++c)
      least = min(least, level_of(m, seen, c));
  }
  scales[at] = static_cast<uint8_t>(m.exponent + least + 127);
}

__global__ void __launch_bounds__(kThreads)
    fill_fp8_kernel(cpu::SeededMatrix m, int64_t elements, int64_t across, uint8_t* out,
                    const uint8_t* scales) {
  __shared__ uint8_t table[kLevels][256];
  fill_table(table, 0, 0);
  each_element(
      m, elements,
      [&](int64_t at, int, int byte, int64_t row, int64_t whole, int64_t local, int64_t column) {
        const int stored = scales[local / kBlock * across + column / kBlock] - 127 - m.exponent;
        out[at] = table[level_of(m, row / kBlock, whole / kBlock) - stored][byte];
      },
      [&](int64_t at, int) { out[at] = 0; });
}

__global__ void __launch_bounds__(kThreads)
    fill_fp4_kernel(cpu::SeededMatrix m, int64_t elements, uint8_t* out) {
  uint32_t pair = 0;
  const auto element = [&](int64_t at, int i, uint32_t code) {
    pair = i % 2 == 0 ? code : pair | code << 4;
    // The last element may have no other in its byte.
    if (i % 2 == 1 || at + 1 == elements) out[at / 2] = static_cast<uint8_t>(pair);
  };
  each_element(
      m, elements,
      [&](int64_t at, int i, int byte, int64_t, int64_t, int64_t, int64_t) {
        element(at, i, (byte ^ byte >> 4) & 15);
      },
      [&](int64_t at, int i) { element(at, i, 0); });
}

std::int64_t elements_of(const cpu::SeededMatrix& m) {
  return (m.runs[0].count + m.runs[1].count) * m.columns;
}

template <class T>
void fill(const cpu::SeededMatrix& m, T* out, const Launch& launch) {
  const std::int64_t elements = elements_of(m);
  if (elements <= 0) return;
  const unsigned grid = grid_for(launch, blocks_for(elements, 8), kThreads, 8);
  fill_kernel<<<grid, kThreads, 0, launch.stream>>>(m, elements, out);
  check_launch("fill_seeded");
}

}  // namespace

void fill_seeded(const cpu::SeededMatrix& m, cpu::Bf16* out, const Launch& launch) {
  fill(m, out, launch);
}
void fill_seeded(const cpu::SeededMatrix& m, float* out, const Launch& launch) {
  fill(m, out, launch);
}

void fill_seeded(const cpu::SeededMatrix& m, cpu::E4m3* out, cpu::Ue8m0* scales,
                 const Launch& launch) {
  const std::int64_t elements = elements_of(m), rows = m.runs[0].count + m.runs[1].count;
  if (elements <= 0) return;
  const std::int64_t across = blocks_for(m.columns, kBlock);
  const std::int64_t blocks = across * blocks_for(rows, kBlock);
  scales_kernel<<<static_cast<unsigned>(blocks_for(blocks, 32)), 32, 0, launch.stream>>>(
      m, rows, across, blocks, scales);
  const unsigned grid = grid_for(launch, blocks_for(elements, 8), kThreads, 8);
  fill_fp8_kernel<<<grid, kThreads, 0, launch.stream>>>(m, elements, across, out, scales);
  check_launch("fill_seeded");
}

void fill_seeded_fp4(const cpu::SeededMatrix& m, cpu::Nibbles* out, cpu::Ue8m0* scales,
                     const Launch& launch) {
  const std::int64_t elements = elements_of(m);
  if (elements <= 0) return;
  check(cudaMemsetAsync(scales, m.exponent + 2 + 127,
                        static_cast<std::size_t>(blocks_for(elements, 32)), launch.stream),
        "fill_seeded_fp4: scales");
  const unsigned grid = grid_for(launch, blocks_for(elements, 8), kThreads, 8);
  fill_fp4_kernel<<<grid, kThreads, 0, launch.stream>>>(m, elements, out);
  check_launch("fill_seeded_fp4");
}

}  // namespace warmgate::kernels::cuda
