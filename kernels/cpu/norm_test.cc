#include "kernels/cpu/norm.h"

#include <cmath>
#include <numbers>

#include "kernels/cpu/output_projection.h"
#include "kernels/cpu/rope.h"
#include "kernels/cpu/testing.h"

namespace warmgate::kernels::cpu {
namespace {

using NormTest = RandomTest;

void expect_normalised(const Bf16* x, const Bf16* weight, const Bf16* y, std::int64_t width) {
  double squares = 0;
  for (std::int64_t i = 0; i < width; ++i) squares += std::pow(to_float(x[i]), 2);
  const double norm = std::sqrt(squares / static_cast<double>(width) + 1e-6);
  for (std::int64_t i = 0; i < width; ++i) {
    const double expected = to_float(x[i]) / norm * to_float(weight[i]);
    ASSERT_NEAR(to_float(y[i]), expected, std::abs(expected) * 0.00392) << i << " of " << width;
  }
}

TEST_F(NormTest, EqualsTheFormula) {
  for (const std::int64_t width : {1, 7, 8, 129, 512}) {
    const std::int64_t x_stride = width + 3, y_stride = width + 1;
    auto x = bf16s(3 * x_stride, 5);
    for (std::int64_t i = 0; i < width; ++i) x[2 * x_stride + i] = 0;  // eps keeps it finite
    const auto weight = bf16s(width);
    auto y = poisoned<Bf16>(3 * y_stride);
    rms_norm({3, width, x.data(), weight.data(), y.data(), 1e-6F, x_stride, y_stride});
    for (std::int64_t t = 0; t < 3; ++t) {
      expect_normalised(x.data() + t * x_stride, weight.data(), y.data() + t * y_stride, width);
      EXPECT_TRUE(is_poison(y[t * y_stride + width]));
    }
  }
}

TEST_F(NormTest, InPlaceAndAloneGiveTheSameBits) {
  const std::int64_t width = 200;
  auto x = bf16s(4 * width);
  const auto weight = bf16s(width);
  std::vector<Bf16> y(4 * width), alone(width);
  rms_norm({4, width, x.data(), weight.data(), y.data()});
  rms_norm({1, width, x.data() + 3 * width, weight.data(), alone.data()});
  EXPECT_TRUE(same_bits(alone.data(), y.data() + 3 * width, width));
  rms_norm({4, width, x.data(), weight.data(), x.data()});
  EXPECT_TRUE(same_bits(x, y));
}

TEST_F(NormTest, FusedIsTwoNorms) {
  const std::int64_t q = 72, kv = 512, tokens = 3;
  const auto qkv = bf16s(tokens * (q + kv)), q_norm = bf16s(q), kv_norm = bf16s(kv);
  std::vector<Bf16> qr(tokens * q), k(tokens * kv);
  fused_qkv_norm({tokens, q, kv, qkv.data(), q_norm.data(), kv_norm.data(), qr.data(), k.data()});
  for (std::int64_t t = 0; t < tokens; ++t) {
    const Bf16* row = qkv.data() + t * (q + kv);
    expect_normalised(row, q_norm.data(), qr.data() + t * q, q);
    expect_normalised(row + q, kv_norm.data(), k.data() + t * kv, kv);
  }
}

TEST_F(NormTest, RopeTableWithAndWithoutYarn) {
  for (const double theta : {10000.0, 160000.0}) {
    std::vector<float> yarn(130 * 64), plain(130 * 64);
    fill_rope_table({130, theta, true, 16, 32, 1, 65536, yarn.data()});
    fill_rope_table({130, theta, false, 16, 32, 1, 65536, plain.data()});
    for (int i = 0; i < 32; ++i) {
      const double f = std::pow(theta, -i / 32.0);
      const double turns = 65536 * f / (2 * std::numbers::pi);  // within the original length
      for (const std::int64_t p : {0, 1, 2, 127, 129}) {
        const double angle = static_cast<double>(p) * f;
        EXPECT_FLOAT_EQ(plain[p * 64 + i], static_cast<float>(std::cos(angle)));
        EXPECT_FLOAT_EQ(plain[p * 64 + 32 + i], static_cast<float>(std::sin(angle)));
      }
      const double angle = std::asin(static_cast<double>(yarn[64 + 32 + i]));
      if (turns > 40) {  // fast pairs stay
        EXPECT_EQ(yarn[64 + i], plain[64 + i]) << i;
      } else if (turns < 0.5) {  // slow ones stretch
        EXPECT_NEAR(angle, f / 16, f * 1e-5) << i;
      } else if (turns > 2 && turns < 20) {
        EXPECT_TRUE(angle < f && angle > f / 16) << i;
      }
    }
  }
}

TEST_F(NormTest, RotatingBackUndoes) {
  std::vector<float> table(9 * 64);
  fill_rope_table({9, 10000, false, 16, 32, 1, 65536, table.data()});
  const auto x = floats(64);
  auto y = x;
  rotate(y.data(), table.data() + 8 * 64);
  EXPECT_NEAR(y[0], x[0] * std::cos(8.0F) - x[1] * std::sin(8.0F), 1e-5);
  EXPECT_NEAR(y[1], x[1] * std::cos(8.0F) + x[0] * std::sin(8.0F), 1e-5);
  rotate_back(y.data(), table.data() + 8 * 64);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(y[i], x[i], 1e-5);
  y = x;
  rotate(y.data(), table.data());  // position 0
  EXPECT_TRUE(same_bits(x, y));
}

TEST_F(NormTest, InverseRopeQuant) {
  const std::int64_t tokens = 3, padded_heads = 6, groups = 2, inputs = 2 * 512;
  std::vector<float> table(50 * 64);
  fill_rope_table({50, 10000, true, 16, 32, 1, 65536, table.data()});
  auto o = bf16s(tokens * padded_heads * 512);
  for (std::int64_t i = 128; i < 256; ++i) o[i] = 0;
  const std::vector<std::int64_t> positions{0, 49, 3};
  auto q = poisoned<E4m3>(tokens * groups * inputs);
  auto scales = poisoned<float>(tokens * groups * inputs / 128);
  inverse_rope_quant({tokens, padded_heads, groups, inputs, o.data(), table.data(),
                      positions.data(), q.data(), scales.data()});
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t h = 0; h < 4; ++h) {
      std::vector<float> x(512);
      for (std::int64_t c = 0; c < 512; ++c) {
        x[c] = to_float(o[(t * padded_heads + h) * 512 + c]);
      }
      rotate_back(x.data() + 448, table.data() + positions[t] * 64);
      for (std::int64_t c = 0; c < 512; ++c) {
        const std::int64_t at = (t * 4 + h) * 512 + c;
        float amax = 1e-10F;
        for (std::int64_t i = c / 128 * 128; i < (c / 128 + 1) * 128; ++i) {
          amax = std::max(amax, std::abs(x[i]));
        }
        const double scale = std::exp2(std::ceil(std::log2(amax / 448.0)));
        ASSERT_EQ(scales[at / 128], scale);
        ASSERT_EQ(q[at], to_e4m3(static_cast<float>(x[c] / scale)));
      }
    }
  }
}

}  // namespace
}  // namespace warmgate::kernels::cpu
