#include "kernels/cpu/rope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace warmgate::kernels::cpu {

namespace {

// The pair (as a real number) that turns `turns` times within the original length.
double correction(const RopeTable& p, double turns) {
  const double ratio = static_cast<double>(p.original_length) / (turns * 2 * std::numbers::pi);
  return static_cast<double>(kRopeDims) * std::log(ratio) / (2 * std::log(p.theta));
}

std::array<double, kRopePairs> frequencies(const RopeTable& p) {
  const double low = std::max(std::floor(correction(p, p.beta_fast)), 0.0);
  double high = std::min(std::ceil(correction(p, p.beta_slow)), static_cast<double>(kRopeDims - 1));
  if (high == low) high += 0.001;  // as upstream: no division by zero
  std::array<double, kRopePairs> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double pair = static_cast<double>(i);
    const double f = std::pow(p.theta, -2 * pair / static_cast<double>(kRopeDims));
    const double ramp = std::clamp((pair - low) / (high - low), 0.0, 1.0);
    out[i] = p.yarn ? f * (1 - ramp) + f / p.factor * ramp : f;
  }
  return out;
}

}  // namespace

void fill_rope_table(const RopeTable& p) {
  const auto frequency = frequencies(p);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    float* out = p.table + row * kRopeDims;
    for (std::size_t i = 0; i < frequency.size(); ++i) {
      const double angle = static_cast<double>(row) * frequency[i];
      out[i] = static_cast<float>(std::cos(angle));
      out[i + kRopePairs] = static_cast<float>(std::sin(angle));
    }
  }
}

void rotate(float* x, const float* row) {
  for (std::int64_t i = 0; i < kRopePairs; ++i) {
    const float e = x[2 * i], o = x[2 * i + 1], cos = row[i], sin = row[kRopePairs + i];
    x[2 * i] = e * cos - o * sin;
    x[2 * i + 1] = o * cos + e * sin;
  }
}

void rotate_back(float* x, const float* row) {
  for (std::int64_t i = 0; i < kRopePairs; ++i) {
    const float e = x[2 * i], o = x[2 * i + 1], cos = row[i], sin = row[kRopePairs + i];
    x[2 * i] = e * cos + o * sin;
    x[2 * i + 1] = o * cos - e * sin;
  }
}

}  // namespace warmgate::kernels::cpu
