#include "kernels/cpu/rope.h"

#include <cmath>

#include "kernels/cpu/rope_frequencies.h"

namespace warmgate::kernels::cpu {

void fill_rope_table(const RopeTable& p) {
  const auto frequency = rope_frequencies(p);
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
