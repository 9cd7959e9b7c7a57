// One power-of-two scale for a run of values, the codes under it, and what they stand for.
#pragma once

#include <vector>

#include "kernels/reference/matrix.h"

namespace warmgate::reference {

struct Quantised {
  std::vector<std::uint8_t> codes;  // one a value; e2m1 codes are not packed
  int exponent = 0;                 // scale = 2^exponent
  Vector unscaled;                  // the codes' values
  Vector values;                    // unscaled * 2^exponent
  [[nodiscard]] double scale() const;
};

/// exponent = ceil(log2(max(amax, floor)/448)), codes of x * 2^-exponent clamped to +-448.
/// floor: 1e-4 for cache rows and indexer queries, 1e-10 before the output projection.
Quantised quantise_e4m3(View x, double floor);

/// exponent = ceil(log2(max(amax, 6 * 2^-126)/6)); one block (the caller cuts runs of 32).
Quantised quantise_e2m1(View x);

/// Cuts x into runs of `run` values, quantises each, and returns what the codes stand for.
Vector through_e4m3(View x, std::int64_t run, double floor);

/// How far an fp32 computation may be from the exact one, relative to the largest value of the row.
inline constexpr double kSlack = 1.0 / (1 << 18);

/// A computed value that lies within `slack` of a rounding edge may fall on either side of it, and
/// the step of e4m3 is large. This is what a right quantisation of `exact` would read as, choosing
/// at such edges (of values, and of the scale) the side that was `stored`: equal to stored *
/// 2^exponent wherever that is right. slack is absolute. bf16_first: exact is rounded to bf16
/// before.
Vector expected_e4m3(View exact, View stored_unscaled, int stored_exponent, double floor,
                     double slack, bool bf16_first);

/// The same for MXFP4: one run of 32.
Vector expected_e2m1(View exact, View stored_unscaled, int stored_exponent, double slack,
                     bool bf16_first);

/// The same for plain bf16 values.
Vector expected_bf16(View exact, View stored, double slack);

/// max |x|
double largest(View x);

}  // namespace warmgate::reference
