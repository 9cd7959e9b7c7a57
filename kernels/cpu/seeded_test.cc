#include "kernels/cpu/seeded.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <cmath>
#include <random>
#include <vector>

namespace warmgate::kernels::cpu {
namespace {

std::int64_t rows_of(const SeededMatrix& m) { return m.runs[0].count + m.runs[1].count; }

std::vector<float> as_fp32(const SeededMatrix& m) {
  std::vector<float> out(static_cast<std::size_t>(rows_of(m) * m.columns), -1e30f);
  fill_seeded(m, out.data());
  return out;
}
std::vector<float> as_bf16(const SeededMatrix& m) {
  std::vector<Bf16> values(static_cast<std::size_t>(rows_of(m) * m.columns), 0xFFFF);
  fill_seeded(m, values.data());
  std::vector<float> out;
  for (const Bf16 v : values) out.push_back(to_float(v));
  return out;
}
struct Fp8 {
  std::vector<float> values;
  std::vector<Ue8m0> scales;
};
Fp8 as_fp8(const SeededMatrix& m) {
  const std::int64_t across = (m.columns + 127) / 128, down = (rows_of(m) + 127) / 128;
  std::vector<E4m3> values(static_cast<std::size_t>(rows_of(m) * m.columns), 0xFF);
  Fp8 out;
  out.scales.assign(static_cast<std::size_t>(across * down), 255);
  fill_seeded(m, values.data(), out.scales.data());
  for (std::int64_t r = 0; r < rows_of(m); ++r) {
    for (std::int64_t c = 0; c < m.columns; ++c) {
      const Ue8m0 scale = out.scales[static_cast<std::size_t>(r / 128 * across + c / 128)];
      out.values.push_back(e4m3_to_float(values[static_cast<std::size_t>(r * m.columns + c)]) *
                           ue8m0_to_float(scale));
    }
  }
  return out;
}

SeededMatrix whole(std::uint64_t key, std::int64_t rows, std::int64_t columns) {
  SeededMatrix m;
  m.key = key;
  m.exponent = -9;
  m.runs[0] = {0, rows, rows};
  m.columns = m.whole_columns = columns;
  return m;
}

TEST(Seeded, EveryFormatHoldsTheSameValues) {
  const SeededMatrix m = whole(std::random_device{}(), 300, 413);
  SCOPED_TRACE("key " + std::to_string(m.key));
  const auto values = as_fp32(m);
  EXPECT_EQ(as_bf16(m), values);
  const Fp8 fp8 = as_fp8(m);
  EXPECT_EQ(fp8.values, values);
  double sum = 0, squares = 0;
  for (const float v : values) sum += v, squares += static_cast<double>(v) * v;
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 4 * kSeededDeviation * std::ldexp(1, -9) / std::sqrt(n));
  // Blocks share a scale in 0..2, so a few blocks may all have the same: wide bounds.
  EXPECT_GT(std::sqrt(squares / n), 6.5 * std::ldexp(1, -9) * 0.95);
  EXPECT_LT(std::sqrt(squares / n), 26.1 * std::ldexp(1, -9) * 1.05);
}

TEST(Seeded, LargeMatricesHaveTheStatedDeviationAndAllScales) {
  const SeededMatrix m = whole(11, 128 * 24, 128 * 8);
  const auto values = as_fp32(m);
  double squares = 0;
  for (const float v : values) squares += static_cast<double>(v) * v;
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())) * 512, kSeededDeviation, 1.5);
  const Fp8 fp8 = as_fp8(m);
  for (const int j : {0, 1, 2}) {
    EXPECT_NE(std::count(fp8.scales.begin(), fp8.scales.end(), 127 - 9 + j), 0) << j;
  }
}

TEST(Seeded, PartsAreWhatTheWholeHasThere) {
  std::mt19937_64 random(std::random_device{}());
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 40; ++round) {
    const std::int64_t rows = pick(1, 400), columns = pick(1, 300);
    SeededMatrix all = whole(random(), rows, columns);
    const auto values = as_fp32(all);
    // Two runs of rows, some of them beyond the matrix, and columns that end beyond it.
    SeededMatrix part = all;
    for (SeededMatrix::Run& run : part.runs) {
      run.first = pick(0, rows);
      run.count = pick(0, 200);
      run.valid = std::min(run.count, rows - run.first);
    }
    part.first_column = pick(0, columns + 3);
    part.columns = pick(1, 200);
    SCOPED_TRACE("key " + std::to_string(all.key) + ", " + std::to_string(rows) + "x" +
                 std::to_string(columns) + " from column " + std::to_string(part.first_column));
    std::vector<float> wanted;
    for (const SeededMatrix::Run& run : part.runs) {
      for (std::int64_t r = run.first; r < run.first + run.count; ++r) {
        for (std::int64_t c = part.first_column; c < part.first_column + part.columns; ++c) {
          const bool there = r - run.first < run.valid && c < columns;
          wanted.push_back(there ? values[static_cast<std::size_t>(r * columns + c)] : 0);
        }
      }
    }
    EXPECT_EQ(as_fp32(part), wanted);
    EXPECT_EQ(as_bf16(part), wanted);
    EXPECT_EQ(as_fp8(part).values, wanted);
  }
}

TEST(Seeded, NormsLieAroundOneExactlyInBf16) {
  SeededMatrix m = whole(3, 1, 1000);
  m.exponent = -7;
  m.offset = 1;
  m.even = true;
  const auto values = as_fp32(m);
  EXPECT_EQ(as_bf16(m), values);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_GT(*least, 0.88f);
  EXPECT_LT(*least, 0.95f);
  EXPECT_LT(*most, 1.12f);
  EXPECT_GT(*most, 1.05f);
}

TEST(Seeded, KeysAndPlacesGiveOtherValues) {
  const auto a = as_fp32(whole(1, 8, 64)), b = as_fp32(whole(2, 8, 64));
  std::size_t same = 0, row = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    same += a[i] == b[i];
    row += a[i] == a[(i + 64) % a.size()];
  }
  EXPECT_LT(same, a.size() / 4);
  EXPECT_LT(row, a.size() / 4);
}

TEST(Seeded, Fp4PartsToo) {
  SeededMatrix all = whole(9, 20, 64), part = all;
  std::vector<Nibbles> values(20 * 32), piece(5 * 32);
  std::vector<Ue8m0> scales(20 * 64 / 32), piece_scales(5 * 2);
  fill_seeded_fp4(all, values.data(), scales.data());
  part.runs[0] = {10, 5, 5};
  fill_seeded_fp4(part, piece.data(), piece_scales.data());
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), values.begin() + 10 * 32));
  EXPECT_EQ(scales, std::vector<Ue8m0>(40, 127 - 7));
  std::vector<bool> seen(16);
  for (const Nibbles n : values) seen[n & 15U] = seen[n >> 4] = true;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 16);
}

}  // namespace
}  // namespace warmgate::kernels::cpu
