// Weights made from a seed, element by element from their place in the whole matrix: whoever makes
// a part of it makes exactly the values that the whole has there, in every number format that can
// hold them.
//
// Element (r,c) is offset + k·2^(exponent+j): k in -15..15 is the sum of two nibbles of a hash of
// (key,r,c) less 15, a triangle of standard deviation 6.52; j in 0..2 is a hash of the 128x128
// block (r/128,c/128), or 0 if `even`. bf16, fp32 and e4m3 under a power-of-two scale hold that
// exactly (with offset 0, or offset 1 and exponent >= -7).
#pragma once

#include <cstdint>

#include "kernels/cpu/formats.h"

namespace warmgate::kernels::cpu {

struct SeededMatrix {
  /// Rows of the part, as they follow each other, out of the whole: `count` of them from row
  /// `first`, of which the last count - valid are beyond the matrix and zero.
  struct Run {
    std::int64_t first = 0, count = 0, valid = 0;
  };
  std::uint64_t key = 0;
  int exponent = 0;
  float offset = 0;
  bool even = false;
  Run runs[2];
  std::int64_t first_column = 0, columns = 0;  // of the part
  std::int64_t whole_columns = 0;              // columns from here on are zero
};

/// Standard deviation of k·2^j.
constexpr double kSeededDeviation = 17.25;

/// out [rows of both runs,columns], row-major without gaps.
void fill_seeded(const SeededMatrix& m, Bf16* out);
void fill_seeded(const SeededMatrix& m, float* out);
/// With offset 0. scales [ceil(rows/128),ceil(columns/128)]: of a block of the part, the least of
/// those blocks of the whole that it has elements of.
void fill_seeded(const SeededMatrix& m, E4m3* out, Ue8m0* scales);
/// Not the values above: code hash % 16 times 2^(exponent+2), all scales alike. Rows may share a
/// byte; element i of the part is in the low nibble where i is even. scales [ceil(elements/32)].
void fill_seeded_fp4(const SeededMatrix& m, Nibbles* out, Ue8m0* scales);

}  // namespace warmgate::kernels::cpu
