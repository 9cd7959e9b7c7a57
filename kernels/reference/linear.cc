#include "kernels/reference/linear.h"

#include <cmath>
#include <stdexcept>

namespace warmgate::reference {

double dot(View x, View w) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * w[i];
  return sum;
}

Vector project(View x, const Matrix& w) {
  if (static_cast<std::int64_t>(x.size()) != w.cols) {
    throw std::invalid_argument("project: a row of " + std::to_string(x.size()) +
                                " by weights of " + std::to_string(w.cols));
  }
  Vector out;
  for (std::int64_t o = 0; o < w.rows; ++o) out.push_back(dot(x, w.row(o)));
  return out;
}

Matrix project(const Matrix& x, const Matrix& w) {
  Matrix out(x.rows, w.rows);
  for (std::int64_t t = 0; t < x.rows; ++t) out.set_row(t, project(x.row(t), w));
  return out;
}

Vector rms_norm(View x, double eps) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double mean = squares / static_cast<double>(x.size());
  Vector out;
  for (const double value : x) out.push_back(value / std::sqrt(mean + eps));
  return out;
}

Vector rms_norm(View x, View weight, double eps) {
  if (x.size() != weight.size()) throw std::invalid_argument("rms_norm: weight of another size");
  Vector out = rms_norm(x, eps);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] *= weight[i];
  return out;
}

Vector norm_heads(View q, std::int64_t head_dim, double eps) {
  const auto dim = static_cast<std::size_t>(head_dim);
  if (dim == 0 || q.size() % dim != 0) throw std::invalid_argument("norm_heads: not whole heads");
  Vector out;
  for (std::size_t at = 0; at < q.size(); at += dim) {
    const Vector head = rms_norm(q.subspan(at, dim), eps);
    out.insert(out.end(), head.begin(), head.end());
  }
  return out;
}

}  // namespace warmgate::reference
