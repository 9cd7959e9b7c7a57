#include "kernels/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace warmgate::reference {

Vector attend(View q, const Matrix& keys, double sink, double scale) {
  Vector out(q.size(), 0.0);
  if (keys.rows == 0 || sink == std::numeric_limits<double>::infinity()) return out;
  if (keys.cols != static_cast<std::int64_t>(q.size())) {
    throw std::invalid_argument("attend: keys of another width than the query");
  }
  Vector scores;
  for (std::int64_t k = 0; k < keys.rows; ++k) {
    double product = 0;
    const View key = keys.row(k);
    for (std::size_t i = 0; i < q.size(); ++i) product += q[i] * key[i];
    scores.push_back(scale * product);
  }
  // Numerator and denominator are divided by e^largest; the sink may be the largest of all.
  const double largest = std::max(sink, *std::max_element(scores.begin(), scores.end()));
  double sum = std::exp(sink - largest);
  for (std::int64_t k = 0; k < keys.rows; ++k) {
    const double weight = std::exp(scores[static_cast<std::size_t>(k)] - largest);
    sum += weight;
    const View value = keys.row(k);
    for (std::size_t i = 0; i < q.size(); ++i) out[i] += weight * value[i];
  }
  for (double& value : out) value /= sum;
  return out;
}

Vector attend_heads(View q, const Matrix& keys, View sinks, double scale) {
  if (sinks.empty() || q.size() % sinks.size() != 0) {
    throw std::invalid_argument("attend: not one sink a head");
  }
  const std::size_t dim = q.size() / sinks.size();
  Vector out;
  for (std::size_t head = 0; head < sinks.size(); ++head) {
    const Vector values = attend(q.subspan(head * dim, dim), keys, sinks[head], scale);
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

Matrix stacked(const Matrix& a, const Matrix& b) {
  if (a.rows != 0 && b.rows != 0 && a.cols != b.cols) {
    throw std::invalid_argument("stacked: rows of different widths");
  }
  Matrix out(a.rows + b.rows, a.rows != 0 ? a.cols : b.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) out.set_row(i, a.row(i));
  for (std::int64_t i = 0; i < b.rows; ++i) out.set_row(a.rows + i, b.row(i));
  return out;
}

}  // namespace warmgate::reference
