#include "kernels/reference/output.h"

#include <stdexcept>

#include "kernels/reference/linear.h"
#include "kernels/reference/number.h"
#include "kernels/reference/quantise.h"

namespace warmgate::reference {

Vector output_operand(View out, std::int64_t head_dim, const Rope& rope, std::int64_t position) {
  return through_e4m3(unrotate_heads(out, head_dim, rope, position), 128, 1e-10);
}

Vector grouped_project(View operand, const Matrix& wo_a, std::int64_t groups) {
  const auto in = static_cast<std::size_t>(wo_a.cols);
  if (groups < 1 || wo_a.rows % groups != 0 ||
      operand.size() != in * static_cast<std::size_t>(groups)) {
    throw std::invalid_argument("grouped_project: sizes do not match the groups");
  }
  const std::int64_t lora = wo_a.rows / groups;
  Vector out;
  for (std::int64_t g = 0; g < groups; ++g) {
    const View mine = operand.subspan(static_cast<std::size_t>(g) * in, in);
    for (std::int64_t r = 0; r < lora; ++r) {
      const View weights = wo_a.row(g * lora + r);
      double sum = 0;
      for (std::size_t i = 0; i < in; ++i) sum += mine[i] * weights[i];
      out.push_back(sum);
    }
  }
  return out;
}

Vector output_project(View z, const Matrix& wo_b) { return project(bf16(z), wo_b); }

Vector sum_over_ranks(const std::vector<Vector>& partial) {
  if (partial.empty()) throw std::invalid_argument("sum over no ranks");
  Vector out(partial.front().size(), 0.0);
  for (const Vector& rank : partial) {
    if (rank.size() != out.size()) throw std::invalid_argument("ranks of different sizes");
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += rank[i];
  }
  return out;
}

}  // namespace warmgate::reference
