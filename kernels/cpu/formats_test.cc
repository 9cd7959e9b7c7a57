#include "kernels/cpu/formats.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/testing.h"

namespace warmgate::kernels::cpu {
namespace {

using FormatsTest = RandomTest;

double e4m3_by_definition(int code) {
  const int exponent = (code >> 3) & 15, mantissa = code & 7;
  const double value =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -value : value;
}

double e2m1_by_definition(int code) {
  const int exponent = (code >> 1) & 3, mantissa = code & 1;
  const double value =
      exponent == 0 ? std::ldexp(mantissa, -1) : std::ldexp(2 + mantissa, exponent - 2);
  return (code & 8) != 0 ? -value : value;
}

// The code with the nearest value among 0..last, ties to the even code.
template <class Value>
int nearest(double magnitude, int last, Value value) {
  magnitude = std::min(magnitude, value(last));
  int best = 0;
  for (int code = 1; code <= last; ++code) {
    const double now = std::abs(value(code) - magnitude), was = std::abs(value(best) - magnitude);
    if (now < was || (now == was && code % 2 == 0)) best = code;
  }
  return best;
}

TEST_F(FormatsTest, Bf16RoundTripsAllValues) {
  for (int bits = 0; bits < 65536; ++bits) {
    const Bf16 value = static_cast<Bf16>(bits);
    const float f = to_float(value);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(to_float(to_bf16(f))));
      EXPECT_EQ(to_bf16(f) & 0x8000, bits & 0x8000);
    } else {
      ASSERT_EQ(to_bf16(f), value);
    }
  }
}

TEST_F(FormatsTest, Bf16RoundsToNearestTiesToEven) {
  for (int bits = 0; bits < 0x7F7F; ++bits) {  // neighbours low, high: both finite
    const float low = to_float(static_cast<Bf16>(bits));
    const float high = to_float(static_cast<Bf16>(bits + 1));
    const float middle = std::bit_cast<float>((static_cast<std::uint32_t>(bits) << 16) | 0x8000U);
    ASSERT_EQ(to_bf16(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(to_bf16(std::nextafter(middle, low)), bits);
    ASSERT_EQ(to_bf16(std::nextafter(middle, high)), bits + 1);
    ASSERT_EQ(to_bf16(-middle), to_bf16(middle) | 0x8000);
  }
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7F80);           // infinity
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x7F800001U)) & 0x7FFF, 0x7FC0);  // a signalling NaN
}

TEST_F(FormatsTest, E4m3DecodesAllValues) {
  for (int code = 0; code < 256; ++code) {
    const float f = e4m3_to_float(static_cast<E4m3>(code));
    if ((code & 0x7F) == 0x7F) {
      EXPECT_TRUE(std::isnan(f)) << code;
    } else {
      EXPECT_EQ(f, e4m3_by_definition(code)) << code;
      EXPECT_EQ(std::signbit(f), code >= 128) << code;
    }
    EXPECT_EQ(to_e4m3(f), code);
  }
}

TEST_F(FormatsTest, E4m3EncodesEveryBf16) {
  for (int bits = 0; bits < 65536; ++bits) {
    const float f = to_float(static_cast<Bf16>(bits));
    const int sign = bits >> 15 << 7;
    const int expected = std::isnan(f) ? 0x7F : nearest(std::abs(f), 0x7E, e4m3_by_definition);
    ASSERT_EQ(to_e4m3(f), expected | sign) << f;
  }
}

TEST_F(FormatsTest, E4m3EdgesBetweenNeighbours) {
  for (int code = 0; code < 0x7E; ++code) {
    const float middle =
        static_cast<float>((e4m3_by_definition(code) + e4m3_by_definition(code + 1)) / 2);
    ASSERT_EQ(to_e4m3(middle), code % 2 == 0 ? code : code + 1);
    ASSERT_EQ(to_e4m3(std::nextafter(middle, 0.0F)), code);
    ASSERT_EQ(to_e4m3(std::nextafter(middle, 1e9F)), code + 1);
  }
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float f : {448.0F, 449.0F, 464.0F, 480.0F, 1e30F, infinity}) {
    EXPECT_EQ(to_e4m3(f), 0x7E);
    EXPECT_EQ(to_e4m3(-f), 0xFE);
  }
  EXPECT_EQ(to_e4m3(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(to_e4m3(-0.0F), 0x80);
}

TEST_F(FormatsTest, E2m1BothWays) {
  for (int code = 0; code < 16; ++code) {
    const float f = e2m1_to_float(static_cast<std::uint8_t>(code | 0xF0));
    EXPECT_EQ(f, e2m1_by_definition(code));
    EXPECT_EQ(to_e2m1(f), code);
  }
  for (int bits = 0; bits < 65536; ++bits) {
    const float f = to_float(static_cast<Bf16>(bits));
    const int expected =
        std::isnan(f) ? 7 : nearest(std::abs(f), 7, e2m1_by_definition) | (bits >> 15 << 3);
    ASSERT_EQ(to_e2m1(f), expected) << f;
  }
}

TEST_F(FormatsTest, Ue8m0AllValues) {
  for (int byte = 0; byte < 255; ++byte) {
    EXPECT_EQ(ue8m0_to_float(static_cast<Ue8m0>(byte)), std::ldexp(1.0, byte - 127));
  }
  EXPECT_TRUE(std::isnan(ue8m0_to_float(255)));
  for (int byte = 1; byte < 254; ++byte) {
    EXPECT_EQ(inverse_scale(static_cast<Ue8m0>(byte)), std::ldexp(1.0, 127 - byte));
  }
}

// The least power of two that brings amax within `largest`.
void expect_least_scale(float amax, float floor, float largest) {
  const double bound = std::max(amax, floor);
  const int exponent = scale_byte(amax, floor, largest) - 127;
  EXPECT_LE(bound, std::ldexp(largest, exponent)) << amax;
  EXPECT_GT(bound, std::ldexp(largest, exponent - 1)) << amax;
}

TEST_F(FormatsTest, ScaleIsTheLeastThatFits) {
  for (int exponent = -120; exponent < 110; ++exponent) {
    for (const float largest : {kE4m3Max, kE2m1Max}) {
      const float edge = std::ldexp(largest, exponent);
      if (!std::isfinite(edge) || edge / largest < 0x1p-126F) continue;
      for (const float a : {std::nextafter(edge, 0.0F), edge, std::nextafter(edge, 1e38F)}) {
        expect_least_scale(a, 6.0F * 0x1p-126F, largest);
      }
    }
  }
  for (int i = 0; i < 2000; ++i) {
    expect_least_scale(std::abs(normal(100)), 1e-4F, kE4m3Max);
    expect_least_scale(std::abs(normal(1e-4F)), 1e-10F, kE4m3Max);
  }
  EXPECT_EQ(scale_byte(0, 1e-4F, kE4m3Max), 127 - 22);
  EXPECT_EQ(scale_byte(448, 1e-4F, kE4m3Max), 127);
  EXPECT_EQ(scale_byte(0, 6.0F * 0x1p-126F, kE2m1Max), 1);
}

TEST_F(FormatsTest, ExponentialWithinTwoUlp) {
  EXPECT_EQ(exponential(0), 1.0F);
  EXPECT_EQ(exponential(-std::numeric_limits<float>::infinity()), 0.0F);
  EXPECT_EQ(exponential(std::numeric_limits<float>::infinity()),
            std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
  double worst = 0;
  for (int i = 0; i < 100000; ++i) {
    const float x = static_cast<float>(below(174000)) * 1e-3F - 86.0F + normal(1e-3F);
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(exponential(x) - exact) / exact);
  }
  EXPECT_LT(worst, 2 * 0x1p-23);
  RecordProperty("worst_relative_error", std::to_string(worst));
}

}  // namespace
}  // namespace warmgate::kernels::cpu
