// Formats, scales and weights against values worked out by hand: if an oracle and an op shared a
// mistake, comparing them would not show it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/reference/number.h"
#include "kernels/reference/quantise.h"
#include "kernels/reference/weights.h"

namespace warmgate::reference {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> list) {
  std::vector<std::byte> out;
  for (const int value : list) out.push_back(static_cast<std::byte>(value));
  return out;
}

TEST(ByHandE4m3, ValuesOfCodes) {
  EXPECT_EQ(e4m3_value(0x00), 0.0);
  EXPECT_EQ(e4m3_value(0x01), 0.001953125);  // 2^-9, the smallest
  EXPECT_EQ(e4m3_value(0x07), 7 * 0.001953125);
  EXPECT_EQ(e4m3_value(0x08), 0.015625);  // 2^-6, the smallest with a full fraction
  EXPECT_EQ(e4m3_value(0x38), 1.0);
  EXPECT_EQ(e4m3_value(0x39), 1.125);
  EXPECT_EQ(e4m3_value(0x7E), 448.0);
  EXPECT_EQ(e4m3_value(0xB8), -1.0);
  EXPECT_TRUE(std::signbit(e4m3_value(0x80)));
  EXPECT_TRUE(std::isnan(e4m3_value(0x7F)));
  EXPECT_TRUE(std::isnan(e4m3_value(0xFF)));
}

TEST(ByHandE4m3, CodesOfValues) {
  EXPECT_EQ(e4m3_code(1.0), 0x38);
  EXPECT_EQ(e4m3_code(1.0625), 0x38);  // midway between 1 and 1.125: the even code
  EXPECT_EQ(e4m3_code(1.0626), 0x39);
  EXPECT_EQ(e4m3_code(1.1875), 0x3A);     // midway between 1.125 and 1.25
  EXPECT_EQ(e4m3_code(0.0009765625), 0);  // 2^-10, midway between 0 and 2^-9
  EXPECT_EQ(e4m3_code(0.0029296875), 2);  // midway between 2^-9 and 2^-8
  EXPECT_EQ(e4m3_code(440.0), 0x7E);
  EXPECT_EQ(e4m3_code(432.0), 0x7E);  // midway between 416 and 448
  EXPECT_EQ(e4m3_code(431.9), 0x7D);
  EXPECT_EQ(e4m3_code(1e9), 0x7E);
  EXPECT_EQ(e4m3_code(-std::numeric_limits<double>::infinity()), 0xFE);
  EXPECT_EQ(e4m3_code(-0.0), 0x80);
  EXPECT_EQ(e4m3_code(-2.0), 0xC0);
  EXPECT_EQ(e4m3_code(std::nan("")), 0x7F);
}

TEST(ByHandBf16, ValuesAndCodes) {
  EXPECT_EQ(bf16_value(0x3F80), 1.0);
  EXPECT_EQ(bf16_value(0x4049), 3.140625);
  EXPECT_EQ(bf16_value(0xC2F7), -123.5);
  EXPECT_EQ(bf16_value(0x0001), std::ldexp(1.0, -133));
  EXPECT_TRUE(std::isinf(bf16_value(0x7F80)));
  EXPECT_TRUE(std::isnan(bf16_value(0x7FC0)));
  EXPECT_EQ(bf16_code(3.14159265), 0x4049);
  EXPECT_EQ(bf16_code(1.0 + 1.0 / 256), 0x3F80);  // midway between 1 and 1 + 2^-7
  EXPECT_EQ(bf16_code(1.0 + 3.0 / 256), 0x3F82);
  EXPECT_EQ(bf16_code(1.0 + 1.0 / 256 + 1e-9), 0x3F81);
  EXPECT_EQ(bf16_code(-0.0), 0x8000);
  EXPECT_EQ(bf16_code(3.39e38), 0x7F7F);
  EXPECT_EQ(bf16_code(3.4e38), 0x7F80);  // past (2 - 2^-8) 2^127
  EXPECT_EQ(bf16_code(-1e300), 0xFF80);
  EXPECT_EQ(bf16(1.003), 1.0);
}

TEST(ByHandScales, Ue8m0AndE2m1) {
  EXPECT_EQ(ue8m0_value(127), 1.0);
  EXPECT_EQ(ue8m0_value(130), 8.0);
  EXPECT_EQ(ue8m0_value(0), std::ldexp(1.0, -127));
  EXPECT_TRUE(std::isnan(ue8m0_value(255)));
  EXPECT_EQ(ue8m0_code(-22), 105);
  EXPECT_THROW(ue8m0_code(128), std::domain_error);
  const double grid[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (unsigned char code = 0; code < 8; ++code) {
    EXPECT_EQ(e2m1_value(code), grid[code]);
    EXPECT_EQ(e2m1_value(static_cast<unsigned char>(code + 8)), -grid[code]);
    EXPECT_EQ(e2m1_code(grid[code]), code);
  }
  EXPECT_EQ(e2m1_code(0.25), 0);  // ties to the even code
  EXPECT_EQ(e2m1_code(0.75), 2);
  EXPECT_EQ(e2m1_code(1.25), 2);
  EXPECT_EQ(e2m1_code(1.75), 4);
  EXPECT_EQ(e2m1_code(2.5), 4);
  EXPECT_EQ(e2m1_code(3.5), 6);
  EXPECT_EQ(e2m1_code(5.0), 6);
  EXPECT_EQ(e2m1_code(-100.0), 15);
}

TEST(ByHandScales, ExponentOfABlock) {
  EXPECT_EQ(scale_exponent(448, 1e-4, 448), 0);
  EXPECT_EQ(scale_exponent(448.001, 1e-4, 448), 1);
  EXPECT_EQ(scale_exponent(224, 1e-4, 448), -1);
  EXPECT_EQ(scale_exponent(1, 1e-4, 448), -8);    // 448/512 < 1 <= 448/256
  EXPECT_EQ(scale_exponent(0, 1e-4, 448), -22);   // 448 * 2^-22 = 1.068e-4
  EXPECT_EQ(scale_exponent(0, 1e-10, 448), -42);  // 448 * 2^-42 = 1.019e-10
  EXPECT_EQ(scale_exponent(6, 0, 6), 0);
  EXPECT_EQ(scale_exponent(6.1, 0, 6), 1);
  EXPECT_EQ(scale_exponent(0, 6 * std::ldexp(1.0, -126), 6), -126);
  EXPECT_THROW(scale_exponent(std::nan(""), 1e-4, 448), std::domain_error);
}

TEST(ByHandScales, StoredValues) {
  EXPECT_EQ(bf16_values(bytes({0x80, 0x3F, 0x49, 0x40})), (Vector{1.0, 3.140625}));
  EXPECT_EQ(fp32_values(bytes({0, 0, 0x80, 0x3F, 0, 0, 0x20, 0xC1})), (Vector{1.0, -10.0}));
  EXPECT_EQ(e4m3_values(bytes({0x38, 0xFE})), (Vector{1.0, -448.0}));
  EXPECT_THROW(fp32_values(bytes({1, 2, 3})), std::invalid_argument);
}

TEST(ByHandQuantise, OneRun) {
  const Quantised q = quantise_e4m3(Vector{896, 2.125, -2, 0}, 1e-4);
  EXPECT_EQ(q.exponent, 1);
  EXPECT_EQ(q.codes, (std::vector<std::uint8_t>{0x7E, 0x38, 0xB8, 0}));  // 448, 1.0625 -> 1, -1, 0
  EXPECT_EQ(q.values, (Vector{896, 2, -2, 0}));
  EXPECT_EQ(q.unscaled, (Vector{448, 1, -1, 0}));
  EXPECT_EQ(quantise_e2m1(Vector{12, 5, -1}).values, (Vector{12, 4, -1}));
  // Two runs, two scales: beside 448 a thousandth rounds to 2^-9, alone 2^-10 is exact.
  EXPECT_EQ(through_e4m3(Vector{448, 0.001, 0.0009765625, 0}, 2, 1e-4),
            (Vector{448, 0.001953125, 0.0009765625, 0}));
}

TEST(ByHandQuantise, TheStoredSideCountsOnlyAtAnEdge) {
  // 1.0625 is midway between 1 and 1.125 at scale 2^0.
  const Vector near{448, 1.0625 - 1e-6}, away{448, 1.05};
  EXPECT_EQ(expected_e4m3(near, Vector{448, 1.125}, 0, 1e-4, 1e-4, false)[1], 1.125);
  EXPECT_EQ(expected_e4m3(near, Vector{448, 1}, 0, 1e-4, 1e-4, false)[1], 1);
  EXPECT_EQ(expected_e4m3(away, Vector{448, 1.125}, 0, 1e-4, 1e-4, false)[1], 1);
  EXPECT_EQ(expected_e4m3(near, Vector{448, 1.25}, 0, 1e-4, 1e-4, false)[1], 1.125);
  // The scale: an amax a hair over 448 may be stored under 2^0; one well over it may not.
  EXPECT_EQ(expected_e4m3(Vector{448.00001}, Vector{448}, 0, 1e-4, 1e-4, false)[0], 448);
  EXPECT_EQ(expected_e4m3(Vector{470}, Vector{448}, 0, 1e-4, 1e-4, false)[0], 480);
  EXPECT_EQ(expected_bf16(Vector{1 + 1.0 / 256 - 1e-9}, Vector{1 + 1.0 / 128}, 1e-6)[0],
            1 + 1.0 / 128);
  EXPECT_EQ(expected_bf16(Vector{1.001}, Vector{1 + 1.0 / 128}, 1e-6)[0], 1);
  EXPECT_EQ(expected_e2m1(Vector{6, 2.5}, Vector{6, 3}, 0, 1e-6, false)[1], 3);
  EXPECT_EQ(largest(Vector{1, -3, 2}), 3);
}

TEST(ByHandWeights, EveryBlockHasItsOwnScale) {
  const std::int64_t rows = 129, cols = 130;
  const std::vector<std::byte> values(static_cast<std::size_t>(rows * cols), std::byte{0x39});
  const Matrix w = weight_fp8(values, bytes({127, 128, 126, 130}), rows, cols);
  EXPECT_EQ(w.at(0, 0), 1.125);
  EXPECT_EQ(w.at(127, 127), 1.125);
  EXPECT_EQ(w.at(127, 128), 2.25);
  EXPECT_EQ(w.at(128, 127), 0.5625);
  EXPECT_EQ(w.at(128, 129), 9.0);
  EXPECT_THROW(weight_fp8(values, bytes({127, 128, 126}), rows, cols), std::invalid_argument);
}

TEST(ByHandWeights, PairsOfNibbles) {
  std::vector<std::byte> packed(32, std::byte{0});
  packed[0] = std::byte{0x72};   // row 0: 1, 6
  packed[31] = std::byte{0xF1};  // row 1, columns 30 and 31: 0.5, -6
  const Matrix w = weight_mxfp4(packed, bytes({127, 128}), 2, 32);
  EXPECT_EQ(w.at(0, 0), 1);
  EXPECT_EQ(w.at(0, 1), 6);
  EXPECT_EQ(w.at(0, 2), 0);
  EXPECT_EQ(w.at(1, 30), 1);
  EXPECT_EQ(w.at(1, 31), -12);
  EXPECT_EQ(weight_bf16(bytes({0x80, 0x3F, 0, 0}), 1, 2).values, (Vector{1, 0}));
  EXPECT_EQ(weight_fp32(bytes({0, 0, 0x80, 0x3F}), 1, 1).values, (Vector{1}));
}

}  // namespace
}  // namespace warmgate::reference
