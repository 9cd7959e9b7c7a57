#include "kernels/cpu/gemm.h"

#include <cmath>

#include "kernels/cpu/testing.h"

namespace warmgate::kernels::cpu {
namespace {

std::int64_t blocks(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit; }

struct Matrix {
  WeightType type;
  std::int64_t rows, columns;
  std::vector<std::uint8_t> data, scales;
  Weights view() const { return {type, data.data(), scales.data(), rows, columns}; }
  double at(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * columns + column;
    const auto scale = [&](std::int64_t at) { return std::ldexp(1.0, scales[at] - 127); };
    switch (type) {
      case WeightType::kBf16: {
        Bf16 v = 0;
        std::memcpy(&v, data.data() + 2 * i, 2);
        return to_float(v);
      }
      case WeightType::kFp32: {
        float v = 0;
        std::memcpy(&v, data.data() + 4 * i, 4);
        return v;
      }
      case WeightType::kFp8:
        return e4m3_to_float(data[i]) * scale(row / 128 * blocks(columns, 128) + column / 128);
      case WeightType::kFp4:
        return e2m1_to_float(static_cast<std::uint8_t>(data[i / 2] >> (i % 2 * 4))) * scale(i / 32);
    }
    return 0;
  }
};

class GemmTest : public RandomTest {
 protected:
  Matrix matrix(WeightType type, std::int64_t rows, std::int64_t columns) {
    Matrix m{type, rows, columns, {}, {}};
    const std::int64_t n = rows * columns;
    if (type == WeightType::kBf16) {
      const auto v = bf16s(n);
      m.data.resize(v.size() * 2);
      std::memcpy(m.data.data(), v.data(), m.data.size());
    } else if (type == WeightType::kFp32) {
      const auto v = floats(n);
      m.data.resize(v.size() * 4);
      std::memcpy(m.data.data(), v.data(), m.data.size());
    } else if (type == WeightType::kFp8) {
      m.data = e4m3s(n);
      m.scales = bytes(blocks(rows, 128) * blocks(columns, 128), 115, 122);
    } else {
      m.data = bytes(blocks(n, 2), 0, 255);
      m.scales = bytes(blocks(n, 32), 122, 128);
    }
    return m;
  }
  std::int64_t edge(std::initializer_list<std::int64_t> values) {
    return *(values.begin() + below(static_cast<std::int64_t>(values.size())));
  }
};

// fp32 sums: the error is measured against the sum of magnitudes.
void expect_product(const Matrix& m, const Bf16* x, std::int64_t row, float y, double output_ulp) {
  double exact = 0, magnitude = 0;
  for (std::int64_t k = 0; k < m.columns; ++k) {
    const double term = m.at(row, k) * to_float(x[k]);
    exact += term;
    magnitude += std::abs(term);
  }
  const double limit = magnitude * static_cast<double>(m.columns + 8) * 0x1p-24 / 4 +
                       std::abs(exact) * output_ulp + 1e-30;
  ASSERT_LE(std::abs(y - exact), limit) << "row " << row << " of " << m.rows << "x" << m.columns;
}

TEST_F(GemmTest, EqualsTheFormulaInEveryType) {
  for (const WeightType type :
       {WeightType::kBf16, WeightType::kFp32, WeightType::kFp8, WeightType::kFp4}) {
    for (int round = 0; round < 4; ++round) {
      const bool fp4 = type == WeightType::kFp4;
      const Matrix m = matrix(type, edge({1, 3, 4, 5, 127, 128, 129, 131}),
                              fp4 ? edge({32, 96, 160}) : edge({1, 7, 8, 9, 127, 128, 129, 300}));
      const std::int64_t tokens = edge({1, 2, 3, 4, 7});
      const std::int64_t x_stride = m.columns + below(3), y_stride = m.rows + below(3);
      auto x = poisoned<Bf16>(tokens * x_stride);
      for (std::int64_t t = 0; t < tokens; ++t) {
        const auto row = bf16s(m.columns);
        std::copy(row.begin(), row.end(), x.begin() + t * x_stride);
      }
      auto y32 = poisoned<float>(tokens * y_stride);
      auto y16 = poisoned<Bf16>(tokens * y_stride);
      gemm({tokens, x.data(), m.view(), OutputType::kFp32, y32.data(), x_stride, y_stride});
      gemm({tokens, x.data(), m.view(), OutputType::kBf16, y16.data(), x_stride, y_stride});
      for (std::int64_t t = 0; t < tokens; ++t) {
        for (std::int64_t o = 0; o < m.rows; ++o) {
          expect_product(m, x.data() + t * x_stride, o, y32[t * y_stride + o], 0);
          ASSERT_EQ(y16[t * y_stride + o], to_bf16(y32[t * y_stride + o]));
        }
        for (std::int64_t o = m.rows; o < y_stride; ++o) {
          ASSERT_TRUE(is_poison(y32[t * y_stride + o]) && is_poison(y16[t * y_stride + o]));
        }
      }
    }
  }
}

TEST_F(GemmTest, TheOrderOfTermsIsWhatTheHeaderSays) {
  for (const std::int64_t n : {8, 11, 40, 100, 128, 511, 512, 513}) {
    const Matrix m = matrix(WeightType::kFp32, 3, n);
    const auto x = bf16s(n);
    std::vector<float> y(3);
    gemm({1, x.data(), m.view(), OutputType::kFp32, y.data()});
    for (std::int64_t row = 0; row < 3; ++row) {
      float lanes[8] = {};
      for (std::int64_t k = 0; k < n; ++k) {
        lanes[k % 8] += static_cast<float>(m.at(row, k)) * to_float(x[k]);
      }
      ASSERT_EQ(y[row], ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
                            ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7])))
          << n;
    }
  }
}

TEST_F(GemmTest, ATokenAloneEqualsItselfInABatch) {
  for (const std::int64_t columns : {129, 2048}) {  // the second in blocks of tokens
    const Matrix m = matrix(WeightType::kFp8, 37, columns);
    const std::int64_t tokens = 90 + below(10);
    const auto x = bf16s(tokens * columns);
    std::vector<float> batch(tokens * m.rows), alone(m.rows);
    gemm({tokens, x.data(), m.view(), OutputType::kFp32, batch.data()});
    for (std::int64_t t = 0; t < tokens; ++t) {
      gemm({1, x.data() + t * columns, m.view(), OutputType::kFp32, alone.data()});
      ASSERT_TRUE(same_bits(alone.data(), batch.data() + t * m.rows, m.rows)) << t;
    }
    // A shard of the rows gives the same outputs as the whole.
    Weights part = m.view();
    part.rows = 5;
    gemm({1, x.data(), part, OutputType::kFp32, alone.data()});
    EXPECT_TRUE(same_bits(alone.data(), batch.data(), 5));
  }
}

TEST_F(GemmTest, VariantsGiveTheSameBits) {
  const Matrix m = matrix(WeightType::kFp8, 30, 333);
  const auto x = bf16s(10 * 333);
  std::vector<float> best(300), baseline(300);
  gemm({10, x.data(), m.view(), OutputType::kFp32, best.data()});
  force_variant(Variant::kBaseline);
  ASSERT_EQ(variant(), Variant::kBaseline);
  gemm({10, x.data(), m.view(), OutputType::kFp32, baseline.data()});
  EXPECT_TRUE(same_bits(best, baseline));
}

TEST_F(GemmTest, NanSpoilsItsOwnTokenOnly) {
  const Matrix m = matrix(WeightType::kBf16, 9, 24);
  auto x = bf16s(5 * 24);
  x[2 * 24 + 7] = 0xFFFF;
  std::vector<Bf16> y(5 * 9);
  gemm({5, x.data(), m.view(), OutputType::kBf16, y.data()});
  for (std::int64_t i = 0; i < 45; ++i) EXPECT_EQ(std::isnan(to_float(y[i])), i / 9 == 2) << i;
}

TEST_F(GemmTest, NothingToDo) {
  const Matrix m = matrix(WeightType::kBf16, 4, 8);
  gemm({0, nullptr, m.view(), OutputType::kBf16, nullptr});
}

TEST_F(GemmTest, GroupedProjectionIsAGemmPerGroup) {
  const std::int64_t tokens = edge({1, 3, 5}), groups = edge({1, 2, 4}), inputs = edge({128, 200});
  const std::int64_t rank = edge({1, 6, 128});
  const Matrix m = matrix(WeightType::kFp8, groups * rank, inputs);
  const auto x = e4m3s(tokens * groups * inputs);
  const std::int64_t per_row = blocks(inputs, 128);
  std::vector<float> scales(tokens * groups * per_row);
  for (float& s : scales) s = std::ldexp(1.0F, static_cast<int>(below(6)) - 8);
  auto z = poisoned<Bf16>(tokens * groups * rank);
  grouped_projection({tokens, groups, rank, inputs, x.data(), scales.data(), m.view(), z.data()});
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t g = 0; g < groups; ++g) {
      std::vector<Bf16> row(inputs);  // e4m3 times a power of two is exact in bf16
      for (std::int64_t i = 0; i < inputs; ++i) {
        row[i] = to_bf16(e4m3_to_float(x[(t * groups + g) * inputs + i]) *
                         scales[(t * groups + g) * per_row + i / 128]);
      }
      std::vector<Bf16> all(groups * rank);
      gemm({1, row.data(), m.view(), OutputType::kBf16, all.data()});
      ASSERT_TRUE(same_bits(all.data() + g * rank, z.data() + (t * groups + g) * rank, rank));
    }
  }
}

TEST_F(GemmTest, GatedMlp) {
  const std::int64_t hidden = 40, inter = 24, tokens = 3;
  const Matrix w13 = matrix(WeightType::kBf16, 2 * inter, hidden);
  const Matrix w2 = matrix(WeightType::kBf16, hidden, inter);
  const auto x = bf16s(tokens * hidden);
  for (const float limit : {0.0F, 2.0F}) {
    std::vector<Bf16> y(tokens * hidden), gate_up(tokens * 2 * inter), h(tokens * inter);
    gated_mlp({tokens, x.data(), w13.view(), w2.view(), y.data(), limit});
    gemm({tokens, x.data(), w13.view(), OutputType::kBf16, gate_up.data()});
    bool clipped = false;
    for (std::int64_t i = 0; i < tokens * inter; ++i) {
      float gate = to_float(gate_up[i / inter * 2 * inter + i % inter]);
      float up = to_float(gate_up[i / inter * 2 * inter + inter + i % inter]);
      clipped = clipped || gate > 2 || std::abs(up) > 2;
      if (limit > 0) gate = std::min(gate, limit), up = std::clamp(up, -limit, limit);
      h[i] = to_bf16(gate / (1 + std::exp(-gate)) * up);
    }
    EXPECT_TRUE(clipped);
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t o = 0; o < hidden; ++o) {
        double exact = 0, magnitude = 0;
        for (std::int64_t i = 0; i < inter; ++i) {
          exact += w2.at(o, i) * to_float(h[t * inter + i]);
          magnitude += std::abs(w2.at(o, i) * to_float(h[t * inter + i]));
        }
        ASSERT_NEAR(to_float(y[t * hidden + o]), exact, magnitude * 0x1p-8);
      }
    }
  }
}

}  // namespace
}  // namespace warmgate::kernels::cpu
