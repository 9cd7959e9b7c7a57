// How fast each pair of a RoPE table turns. For whoever fills tables, on any device.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "kernels/cpu/rope.h"

namespace warmgate::kernels::cpu {

/// The pair (as a real number) that turns `turns` times within the original length.
inline double rope_correction(const RopeTable& p, double turns) {
  const double ratio = static_cast<double>(p.original_length) / (turns * 2 * std::numbers::pi);
  return static_cast<double>(kRopeDims) * std::log(ratio) / (2 * std::log(p.theta));
}

/// Radians a position, by pair.
inline std::array<double, kRopePairs> rope_frequencies(const RopeTable& p) {
  const double low = std::max(std::floor(rope_correction(p, p.beta_fast)), 0.0);
  double high =
      std::min(std::ceil(rope_correction(p, p.beta_slow)), static_cast<double>(kRopeDims - 1));
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

}  // namespace warmgate::kernels::cpu
