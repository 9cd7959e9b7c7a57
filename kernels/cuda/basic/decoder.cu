// Rows are moved 16 bytes at a time where width and pointers allow it, else element by element.
#include "kernels/cuda/basic/align.h"
#include "kernels/cuda/basic/decoder.h"
#include "kernels/cuda/rows.cuh"

namespace warmgate::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// A piece of a row: eight elements, or one.
__device__ __forceinline__ uint4 add(uint4 a, uint4 b) {
  Eight x = widen(a);
  const Eight y = widen(b);
#pragma unroll
  for (int i = 0; i < 8; ++i) x.x[i] += y.x[i];
  return narrow(x);
}
__device__ __forceinline__ uint16_t add(uint16_t a, uint16_t b) {
  return to_bf16(bf16_to_float(a) + bf16_to_float(b));
}
__device__ __forceinline__ uint4 mean(const uint4* first, int64_t step, int64_t copies) {
  Eight sum{};
  for (int64_t c = 0; c < copies; ++c) {
    const Eight v = widen(first[c * step]);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum.x[i] += v.x[i];
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) sum.x[i] = __fdiv_rn(sum.x[i], static_cast<float>(copies));
  return narrow(sum);
}
__device__ __forceinline__ uint16_t mean(const uint16_t* first, int64_t step, int64_t copies) {
  float sum = 0;
  for (int64_t c = 0; c < copies; ++c) sum += bf16_to_float(first[c * step]);
  return to_bf16(__fdiv_rn(sum, static_cast<float>(copies)));
}

// Calls each(token, piece of the row) for the whole grid's share.
template <class Each>
__device__ __forceinline__ void each_piece(int64_t tokens, int64_t pieces, Each each) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; i < tokens * pieces;
       i += step) {
    const int64_t t = i / pieces;
    each(t, i - t * pieces);
  }
}

struct Shape {
  int64_t tokens, copies, pieces, x_step;
};

template <class Piece>
__global__ void embed_kernel(cpu::Embed p, int64_t pieces) {
  const Piece* table = reinterpret_cast<const Piece*>(p.table);
  each_piece(p.tokens, pieces, [&](int64_t t, int64_t c) {
    const int64_t row = p.ids[t] - p.first_id;
    const bool own = row >= 0 && row < p.rows;
    reinterpret_cast<Piece*>(p.out)[t * pieces + c] = own ? table[row * pieces + c] : Piece{};
  });
}
template <class Piece>
__global__ void spread_kernel(Shape s, const Piece* x, Piece* residual) {
  each_piece(s.tokens, s.pieces, [&](int64_t t, int64_t c) {
    const Piece v = x[t * s.pieces + c];
    for (int64_t copy = 0; copy < s.copies; ++copy)
      residual[(t * s.copies + copy) * s.pieces + c] = v;
  });
}
template <class Piece>
__global__ void first_kernel(Shape s, const Piece* residual, Piece* x) {
  each_piece(s.tokens, s.pieces, [&](int64_t t, int64_t c) {
    x[t * s.pieces + c] = residual[t * s.copies * s.pieces + c];
  });
}
template <class Piece>
__global__ void add_kernel(Shape s, const Piece* y, Piece* residual) {
  each_piece(s.tokens, s.pieces, [&](int64_t t, int64_t c) {
    Piece* first = residual + t * s.copies * s.pieces + c;
    const Piece v = add(*first, y[t * s.pieces + c]);
    for (int64_t copy = 0; copy < s.copies; ++copy) first[copy * s.pieces] = v;
  });
}
template <class Piece>
__global__ void mean_kernel(Shape s, const Piece* residual, Piece* x) {
  each_piece(s.tokens, s.pieces, [&](int64_t t, int64_t c) {
    x[t * s.x_step + c] = mean(residual + t * s.copies * s.pieces + c, s.pieces, s.copies);
  });
}

constexpr int kRowsAtOnce = 256;
struct RowList {
  int64_t row[kRowsAtOnce];
};
template <class Piece>
__global__ void select_kernel(int64_t count, int64_t pieces, __grid_constant__ const RowList rows,
                              const Piece* x, Piece* out) {
  each_piece(count, pieces,
             [&](int64_t t, int64_t c) { out[t * pieces + c] = x[rows.row[t] * pieces + c]; });
}

bool in_pieces(std::int64_t width, const void* a, const void* b) {
  return width % 8 == 0 && aligned(a) && aligned(b);
}

// kernel<uint4> or kernel<uint16_t>, as width and pointers allow.
template <class Wide, class Narrow>
void in_either(bool wide, std::int64_t tokens, std::int64_t width, const Launch& launch,
               const char* name, Wide launch_wide, Narrow launch_narrow) {
  if (tokens <= 0 || width <= 0) return;
  const std::int64_t pieces = wide ? width / 8 : width;
  const unsigned grid = grid_for(launch, tokens * pieces, kThreads, 16);
  wide ? launch_wide(grid, pieces) : launch_narrow(grid, pieces);
  check_launch(name);
}

template <class T>
const T* as(const cpu::Bf16* p) {
  return reinterpret_cast<const T*>(p);
}
template <class T>
T* as(cpu::Bf16* p) {
  return reinterpret_cast<T*>(p);
}

}  // namespace

Reason can_run(const cpu::Embed&, const Launch&) { return {}; }
void run(const cpu::Embed& p, const Launch& launch) {
  cudaStream_t stream = launch.stream;
  in_either(
      in_pieces(p.width, p.table, p.out), p.tokens, p.width, launch, "embed",
      [&](unsigned g, std::int64_t n) { embed_kernel<uint4><<<g, kThreads, 0, stream>>>(p, n); },
      [&](unsigned g, std::int64_t n) {
        embed_kernel<uint16_t><<<g, kThreads, 0, stream>>>(p, n);
      });
}

void spread_copies(const cpu::Copies& s, const cpu::Bf16* x, cpu::Bf16* residual,
                   const Launch& launch) {
  cudaStream_t stream = launch.stream;
  in_either(
      in_pieces(s.width, x, residual), s.tokens, s.width, launch, "spread_copies",
      [&](unsigned g, std::int64_t n) {
        spread_kernel<uint4><<<g, kThreads, 0, stream>>>({s.tokens, s.copies, n, n}, as<uint4>(x),
                                                         as<uint4>(residual));
      },
      [&](unsigned g, std::int64_t n) {
        spread_kernel<uint16_t>
            <<<g, kThreads, 0, stream>>>({s.tokens, s.copies, n, n}, x, residual);
      });
}

void first_copy(const cpu::Copies& s, const cpu::Bf16* residual, cpu::Bf16* x,
                const Launch& launch) {
  cudaStream_t stream = launch.stream;
  in_either(
      in_pieces(s.width, x, residual), s.tokens, s.width, launch, "first_copy",
      [&](unsigned g, std::int64_t n) {
        first_kernel<uint4><<<g, kThreads, 0, stream>>>({s.tokens, s.copies, n, n},
                                                        as<uint4>(residual), as<uint4>(x));
      },
      [&](unsigned g, std::int64_t n) {
        first_kernel<uint16_t><<<g, kThreads, 0, stream>>>({s.tokens, s.copies, n, n}, residual, x);
      });
}

void add_to_copies(const cpu::Copies& s, const cpu::Bf16* y, cpu::Bf16* residual,
                   const Launch& launch) {
  cudaStream_t stream = launch.stream;
  in_either(
      in_pieces(s.width, y, residual), s.tokens, s.width, launch, "add_to_copies",
      [&](unsigned g, std::int64_t n) {
        add_kernel<uint4><<<g, kThreads, 0, stream>>>({s.tokens, s.copies, n, n}, as<uint4>(y),
                                                      as<uint4>(residual));
      },
      [&](unsigned g, std::int64_t n) {
        add_kernel<uint16_t><<<g, kThreads, 0, stream>>>({s.tokens, s.copies, n, n}, y, residual);
      });
}

void mean_of_copies(const cpu::Copies& s, const cpu::Bf16* residual, cpu::Bf16* x,
                    const Launch& launch) {
  cudaStream_t stream = launch.stream;
  const std::int64_t x_stride = s.x_stride > 0 ? s.x_stride : s.width;
  in_either(
      in_pieces(s.width, x, residual) && x_stride % 8 == 0, s.tokens, s.width, launch,
      "mean_of_copies",
      [&](unsigned g, std::int64_t n) {
        mean_kernel<uint4><<<g, kThreads, 0, stream>>>({s.tokens, s.copies, n, x_stride / 8},
                                                       as<uint4>(residual), as<uint4>(x));
      },
      [&](unsigned g, std::int64_t n) {
        mean_kernel<uint16_t>
            <<<g, kThreads, 0, stream>>>({s.tokens, s.copies, n, x_stride}, residual, x);
      });
}

void select_rows(std::int64_t count, std::int64_t width, const std::int64_t* rows,
                 const cpu::Bf16* x, cpu::Bf16* out, const Launch& launch) {
  cudaStream_t stream = launch.stream;
  for (std::int64_t first = 0; first < count; first += kRowsAtOnce) {
    const std::int64_t part = std::min<std::int64_t>(kRowsAtOnce, count - first);
    RowList list{};
    std::copy_n(rows + first, part, list.row);
    cpu::Bf16* to = out + first * width;
    in_either(
        in_pieces(width, x, out), part, width, launch, "select_rows",
        [&](unsigned g, std::int64_t n) {
          select_kernel<uint4>
              <<<g, kThreads, 0, stream>>>(part, n, list, as<uint4>(x), as<uint4>(to));
        },
        [&](unsigned g, std::int64_t n) {
          select_kernel<uint16_t><<<g, kThreads, 0, stream>>>(part, n, list, x, to);
        });
  }
}

}  // namespace warmgate::kernels::cuda
