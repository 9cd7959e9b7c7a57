#include "kernels/reference/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace warmgate::reference {
namespace {

// The pair that turns `rotations` times within the original length.
double pair_of(const Rope& rope, double rotations) {
  const double dims = static_cast<double>(rope.dims);
  return dims * std::log(rope.original_length / (2 * std::numbers::pi * rotations)) /
         (2 * std::log(rope.theta));
}

Vector turned(View head, const Rope& rope, double direction, std::int64_t position) {
  const auto dims = static_cast<std::size_t>(rope.dims);
  if (head.size() < dims) throw std::invalid_argument("rope: a head shorter than the rotated part");
  const Vector frequencies = inverse_frequencies(rope);
  const std::size_t first = head.size() - dims;
  Vector out(head.begin(), head.end());
  for (std::size_t i = 0; i < dims / 2; ++i) {
    const double angle = direction * static_cast<double>(position) * frequencies[i];
    const double e = head[first + 2 * i], o = head[first + 2 * i + 1];
    out[first + 2 * i] = e * std::cos(angle) - o * std::sin(angle);
    out[first + 2 * i + 1] = o * std::cos(angle) + e * std::sin(angle);
  }
  return out;
}

template <typename Turn>
Vector each_head(View heads, std::int64_t head_dim, Turn&& turn) {
  const auto dim = static_cast<std::size_t>(head_dim);
  if (dim == 0 || heads.size() % dim != 0) throw std::invalid_argument("rope: not whole heads");
  Vector out;
  for (std::size_t at = 0; at < heads.size(); at += dim) {
    const Vector head = turn(heads.subspan(at, dim));
    out.insert(out.end(), head.begin(), head.end());
  }
  return out;
}

}  // namespace

Rope rope_of_layer(std::int64_t ratio, WindowRope choice) {
  Rope rope;
  rope.theta = ratio > 1 ? 160000 : 10000;
  rope.yarn = ratio > 1 || choice == WindowRope::yarn;
  return rope;
}

Vector inverse_frequencies(const Rope& rope) {
  const double low = std::max(0.0, std::floor(pair_of(rope, rope.beta_fast)));
  const double high =
      std::min(static_cast<double>(rope.dims - 1), std::ceil(pair_of(rope, rope.beta_slow)));
  Vector out;
  for (std::int64_t i = 0; i < rope.dims / 2; ++i) {
    const double pair = static_cast<double>(i);
    const double own = std::pow(rope.theta, -2 * pair / static_cast<double>(rope.dims));
    if (!rope.yarn) {
      out.push_back(own);
      continue;
    }
    const double ramp = std::clamp((pair - low) / (high - low), 0.0, 1.0);
    out.push_back(own * (1 - ramp) + own / rope.factor * ramp);
  }
  return out;
}

Vector cos_sin(const Rope& rope, std::int64_t position) {
  Vector cosines, sines;
  for (const double frequency : inverse_frequencies(rope)) {
    cosines.push_back(std::cos(static_cast<double>(position) * frequency));
    sines.push_back(std::sin(static_cast<double>(position) * frequency));
  }
  cosines.insert(cosines.end(), sines.begin(), sines.end());
  return cosines;
}

Vector rotate(View head, const Rope& rope, std::int64_t position) {
  return turned(head, rope, 1, position);
}

Vector unrotate(View head, const Rope& rope, std::int64_t position) {
  return turned(head, rope, -1, position);
}

Vector rotate_heads(View heads, std::int64_t head_dim, const Rope& rope, std::int64_t position) {
  return each_head(heads, head_dim, [&](View head) { return rotate(head, rope, position); });
}

Vector unrotate_heads(View heads, std::int64_t head_dim, const Rope& rope, std::int64_t position) {
  return each_head(heads, head_dim, [&](View head) { return unrotate(head, rope, position); });
}

}  // namespace warmgate::reference
