#include "kernels/reference/layer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/reference/linear.h"

namespace warmgate::reference {

double silu(double x) { return x / (1 + std::exp(-x)); }

Vector silu_and_mul(View gate_up, double limit) {
  if (gate_up.size() % 2 != 0) throw std::invalid_argument("gate and up of different sizes");
  const std::size_t inter = gate_up.size() / 2;
  Vector out;
  for (std::size_t i = 0; i < inter; ++i) {
    double gate = gate_up[i], up = gate_up[inter + i];
    if (limit > 0) {
      gate = std::min(gate, limit);
      up = std::clamp(up, -limit, limit);
    }
    out.push_back(silu(gate) * up);
  }
  return out;
}

Vector gated_mlp(View x, const Matrix& gate_up, const Matrix& down, double limit) {
  return project(silu_and_mul(project(x, gate_up), limit), down);
}

Vector add(View residual, View y) {
  if (residual.size() != y.size()) throw std::invalid_argument("add: different sizes");
  Vector out;
  for (std::size_t i = 0; i < y.size(); ++i) out.push_back(residual[i] + y[i]);
  return out;
}

std::int64_t argmax(View logits) {
  std::int64_t best = -1;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) return -1;
    if (best < 0 || logits[i] > logits[static_cast<std::size_t>(best)]) {
      best = static_cast<std::int64_t>(i);
    }
  }
  return best;
}

}  // namespace warmgate::reference
