// How far an op's output is from an oracle's, row by row.
#pragma once

#include "kernels/reference/matrix.h"

namespace warmgate::reference {

inline constexpr double kRowLimit = 1.0 / 128;

/// ‖out − ref‖₂ / ‖ref‖₂. A zero reference wants a zero output (0, else infinity); a value that is
/// not finite where the reference is gives infinity.
double row_error(View out, View ref);

/// The worst row and where it is.
struct Worst {
  double error = 0;
  std::int64_t row = -1;
};
Worst worst_row(const Matrix& out, const Matrix& ref);

/// Bytes that differ; sizes that differ count as all.
std::int64_t mismatches(Bytes a, Bytes b);

}  // namespace warmgate::reference
