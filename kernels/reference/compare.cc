#include "kernels/reference/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace warmgate::reference {

double row_error(View out, View ref) {
  if (out.size() != ref.size()) throw std::invalid_argument("row error: different sizes");
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < ref.size(); ++i) {
    difference += (out[i] - ref[i]) * (out[i] - ref[i]);
    size += ref[i] * ref[i];
  }
  if (difference == 0) return 0;
  const double error = std::sqrt(difference) / std::sqrt(size);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

Worst worst_row(const Matrix& out, const Matrix& ref) {
  if (out.rows != ref.rows) throw std::invalid_argument("worst row: different numbers of rows");
  Worst worst;
  for (std::int64_t r = 0; r < ref.rows; ++r) {
    const double error = row_error(out.row(r), ref.row(r));
    if (worst.row < 0 || error > worst.error) worst = {error, r};
  }
  return worst;
}

std::int64_t mismatches(Bytes a, Bytes b) {
  if (a.size() != b.size()) return static_cast<std::int64_t>(std::max(a.size(), b.size()));
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

}  // namespace warmgate::reference
