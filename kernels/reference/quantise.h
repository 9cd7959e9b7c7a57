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

}  // namespace warmgate::reference
