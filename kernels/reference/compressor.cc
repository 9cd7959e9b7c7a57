#include "kernels/reference/compressor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels/reference/linear.h"

namespace warmgate::reference {

std::int64_t CompressorShape::columns() const { return overlap() ? 2 * dim : dim; }

std::int64_t CompressorShape::rows() const { return overlap() ? 2 * ratio : ratio; }

Vector state_row(const CompressorShape& shape, View kv_score, const Matrix& ape,
                 std::int64_t position) {
  const auto columns = static_cast<std::size_t>(shape.columns());
  if (kv_score.size() != 2 * columns || ape.rows != shape.ratio || ape.cols != shape.columns()) {
    throw std::invalid_argument("state row: sizes do not match the compressor");
  }
  const View offset = ape.row(position % shape.ratio);
  Vector out(kv_score.begin(), kv_score.end());
  for (std::size_t c = 0; c < columns; ++c) out[columns + c] += offset[c];
  return out;
}

bool ends_entry(std::int64_t ratio, std::int64_t position) {
  return ratio > 1 && (position + 1) % ratio == 0;
}

std::vector<std::int64_t> pooled_positions(const CompressorShape& shape, std::int64_t entry) {
  const std::int64_t last = shape.ratio * entry + shape.ratio - 1;
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < shape.rows(); ++i) out.push_back(last - shape.rows() + 1 + i);
  return out;
}

Vector pooled(const CompressorShape& shape, const std::vector<std::optional<Vector>>& rows) {
  if (static_cast<std::int64_t>(rows.size()) != shape.rows()) {
    throw std::invalid_argument("compressor: wrong number of state rows");
  }
  const auto dim = static_cast<std::size_t>(shape.dim);
  const auto columns = static_cast<std::size_t>(shape.columns());
  Vector out;
  for (std::size_t channel = 0; channel < dim; ++channel) {
    Vector kv, score;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool current = !shape.overlap() || static_cast<std::int64_t>(i) >= shape.ratio;
      const std::size_t column = shape.overlap() && current ? dim + channel : channel;
      if (rows[i] && rows[i]->size() != 2 * columns) {
        throw std::invalid_argument("compressor: a state row of another size");
      }
      kv.push_back(rows[i] ? (*rows[i])[column] : 0.0);
      score.push_back(rows[i] ? (*rows[i])[columns + column]
                              : -std::numeric_limits<double>::infinity());
    }
    const double largest = *std::max_element(score.begin(), score.end());
    double sum = 0, weighted = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double weight = std::exp(score[i] - largest);
      sum += weight;
      weighted += weight * kv[i];
    }
    out.push_back(weighted / sum);
  }
  return out;
}

Vector compressed_entry(const CompressorShape& shape,
                        const std::vector<std::optional<Vector>>& rows, View norm, double eps,
                        const Rope& rope, std::int64_t entry) {
  const Vector normalised = rms_norm(pooled(shape, rows), norm, eps);
  return rotate(normalised, rope, shape.ratio * entry);
}

}  // namespace warmgate::reference
