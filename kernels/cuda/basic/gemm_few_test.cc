// Products of few tokens against float64, all weights and ways to cut the work.
#include <array>

#include "kernels/cpu/weights.h"
#include "kernels/cuda/basic/gemm.h"
#include "kernels/cuda/basic/gemm_mma.h"
#include "kernels/cuda/basic/test_inputs.h"

namespace warmgate::kernels::cuda {
namespace {

using cpu::OutputType;
using cpu::WeightType;

struct Worst {
  double bf16 = 0, fp32 = 0;
};

class FewTokens : public GpuTest {
 protected:
  struct Matrix {
    WeightType type;
    std::int64_t rows, columns;
    std::vector<std::uint8_t> data, scales;
    cpu::Weights host() const { return {type, data.data(), scales.data(), rows, columns}; }
    std::vector<float> row(std::int64_t r) const {
      std::vector<float> out(static_cast<std::size_t>(columns + 8));
      cpu::weight_row(host(), r, out.data());
      return out;
    }
  };
  std::vector<std::uint8_t> bytes_of(const std::vector<cpu::Bf16>& v) {
    std::vector<std::uint8_t> out(v.size() * sizeof(cpu::Bf16));
    std::memcpy(out.data(), v.data(), out.size());
    return out;
  }
  Matrix matrix(WeightType type, std::int64_t rows, std::int64_t columns) {
    Matrix m{type, rows, columns, {}, {}};
    std::int64_t scales = 0;
    if (type == WeightType::kBf16) {
      m.data = bytes_of(bf16s(rows * columns));
    } else if (type == WeightType::kFp8) {
      m.data = e4m3s(rows * columns);
      scales = (rows + 127) / 128 * ((columns + 127) / 128);
    } else {
      m.data.resize(static_cast<std::size_t>(rows * columns / 2));
      for (auto& v : m.data) v = static_cast<std::uint8_t>(integer(0, 255));
      scales = rows * columns / 32;
    }
    m.scales.resize(static_cast<std::size_t>(std::max<std::int64_t>(scales, 1)));
    for (auto& v : m.scales) v = static_cast<std::uint8_t>(127 + integer(-9, 3));
    return m;
  }

  void compare(const Matrix& m, std::int64_t tokens, OutputType type, std::int64_t x_gap,
               std::int64_t y_gap, const MmaCut* cut) {
    const std::int64_t xs = m.columns + x_gap, ys = m.rows + y_gap;
    const auto x = bf16s(tokens * xs);
    const std::size_t width = type == OutputType::kFp32 ? 4 : 2;
    DeviceArray<cpu::Bf16> in(x);
    DeviceArray<std::uint8_t> w(m.data), scales(m.scales);
    DeviceArray<std::uint8_t> out(tokens * ys * static_cast<std::int64_t>(width));
    const cpu::Gemm p{tokens, in.data(),  {m.type, w.data(), scales.data(), m.rows, m.columns},
                      type,   out.data(), xs,
                      ys};
    const TestLaunch launch(4 << 20);
    ASSERT_EQ(can_run(p, launch.get()), std::nullopt);
    if (cut != nullptr) {
      ASSERT_TRUE(fits_mma(p));
      multiply_mma(p, launch.get(), *cut);
    } else {
      run(p, launch.get());
    }
    const auto got = out.read();
    EXPECT_EQ(out.overrun(), 0);
    std::vector<double> error(static_cast<std::size_t>(tokens)), size(error.size());
    std::int64_t gaps = 0;
    const auto value = [&](std::size_t at) {
      if (type == OutputType::kFp32) {
        float v;
        std::memcpy(&v, &got[at * 4], 4);
        return static_cast<double>(v);
      }
      cpu::Bf16 v;
      std::memcpy(&v, &got[at * 2], 2);
      return static_cast<double>(cpu::to_float(v));
    };
    for (std::int64_t r = 0; r < m.rows; ++r) {
      const auto row = m.row(r);
      for (std::int64_t t = 0; t < tokens; ++t) {
        double want = 0;
        for (std::int64_t k = 0; k < m.columns; ++k)
          want += static_cast<double>(cpu::to_float(x[static_cast<std::size_t>(t * xs + k)])) *
                  row[static_cast<std::size_t>(k)];
        const double off = value(static_cast<std::size_t>(t * ys + r)) - want;
        error[static_cast<std::size_t>(t)] += off * off;
        size[static_cast<std::size_t>(t)] += want * want;
      }
    }
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::size_t i = static_cast<std::size_t>(t * ys + m.rows) * width;
           i < static_cast<std::size_t>((t + 1) * ys) * width; ++i)
        gaps += got[i] != DeviceArray<int>::kPoison;
      const auto at = static_cast<std::size_t>(t);
      const double off = std::sqrt(error[at] / size[at]);
      EXPECT_LE(off, type == OutputType::kFp32 ? 2e-5 : 1.0 / 128)
          << "token " << t << " of " << tokens << ", rows " << m.rows << ", columns " << m.columns
          << ", weights " << static_cast<int>(m.type);
      double& most = type == OutputType::kFp32 ? worst.fp32 : worst.bf16;
      most = std::max(most, off);
    }
    EXPECT_EQ(gaps, 0) << "written between rows of y";
  }
  void TearDown() override {
    GpuTest::TearDown();
    std::printf("worst: bf16 %.2e, fp32 %.2e\n", worst.bf16, worst.fp32);
  }
  Worst worst;
};

constexpr std::array kTypes = {WeightType::kBf16, WeightType::kFp8, WeightType::kFp4};

TEST_F(FewTokens, EveryCutEveryCount) {
  for (const WeightType type : kTypes) {
    // 200: no whole tile of rows or block of scales. 1056: no whole step of 128 bytes.
    const Matrix m = matrix(type, 200, 1056);
    for (const std::int64_t tokens : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 32, 33, 64, 70}) {
      for (const int row_tiles : {1, 2}) {
        for (const int warps : {1, 64}) {
          const MmaCut cut{row_tiles, warps};
          compare(m, tokens, tokens % 2 == 0 ? OutputType::kFp32 : OutputType::kBf16, 8, 3, &cut);
        }
      }
    }
  }
}

TEST_F(FewTokens, OddSizesAndStrides) {
  for (const WeightType type : kTypes) {
    for (int i = 0; i < 12; ++i) {
      // Multiples of 32 are for the matrix units; others, and odd strides, go the slow way.
      const bool whole = type == WeightType::kFp4 || i % 2 == 0;
      const std::int64_t columns = whole ? 32 * integer(1, 70) : integer(1, 700);
      const Matrix m = matrix(type, integer(1, 300), columns);
      compare(m, integer(1, 17), i % 3 == 0 ? OutputType::kFp32 : OutputType::kBf16,
              i % 4 == 3 ? 5 : 0, i % 4, nullptr);
    }
  }
}

// Widening goes through numbers that bf16 holds only as subnormal ones.
TEST_F(FewTokens, SubnormalCodesCount) {
  for (const WeightType type : {WeightType::kFp8, WeightType::kFp4}) {
    Matrix m = matrix(type, 48, 256);
    for (auto& v : m.data) {
      v = static_cast<std::uint8_t>(type == WeightType::kFp8
                                        ? integer(1, 7) + 128 * integer(0, 1)
                                        : integer(0, 1) * 8 + 1 + (integer(0, 1) * 8 + 1) * 16);
    }
    for (const std::int64_t tokens : {2, 12}) compare(m, tokens, OutputType::kFp32, 0, 0, nullptr);
  }
}

TEST_F(FewTokens, NaNStaysInItsRow) {
  Matrix m = matrix(WeightType::kFp8, 64, 512);
  m.data[33 * 512 + 300] = 0xFF;
  m.data[5 * 512 + 1] = 0x7F;
  DeviceArray<std::uint8_t> w(m.data), scales(m.scales);
  DeviceArray<cpu::Bf16> x(bf16s(20 * 512)), y(20 * 64);
  const TestLaunch launch;
  for (const std::int64_t tokens : {3, 20}) {
    run(cpu::Gemm{tokens,
                  x.data(),
                  {m.type, w.data(), scales.data(), 64, 512},
                  OutputType::kBf16,
                  y.data()},
        launch.get());
    const auto got = y.read();
    for (std::int64_t i = 0; i < tokens * 64; ++i)
      EXPECT_EQ(std::isnan(cpu::to_float(got[static_cast<std::size_t>(i)])),
                i % 64 == 33 || i % 64 == 5)
          << i;
  }
}

TEST_F(FewTokens, GroupsInOneLaunch) {
  for (const auto& [groups, rank, inputs] : std::vector<std::array<std::int64_t, 3>>{
           {8, 128, 1024}, {3, 100, 144}, {2, 72, 640}, {5, 16, 16}}) {
    const Matrix m = matrix(WeightType::kFp8, groups * rank, inputs);
    const std::int64_t across = (inputs + 127) / 128;
    DeviceArray<std::uint8_t> w(m.data), scales(m.scales);
    for (const std::int64_t tokens : {1, 3, 4, 8, 13, 17, 40, 64}) {
      auto x = e4m3s(tokens * groups * inputs);
      std::vector<float> xs = floats(tokens * groups * across);
      const std::int64_t odd = tokens > 3 ? 2 : -1;  // a token whose group 1 has NaN
      if (odd >= 0) x[static_cast<std::size_t>((odd * groups + 1) * inputs + inputs - 3)] = 0x7F;
      DeviceArray<std::uint8_t> in(x);
      DeviceArray<float> in_scales(xs);
      DeviceArray<cpu::Bf16> z(tokens * groups * rank);
      const TestLaunch launch;
      for (const MmaCut cut : {MmaCut{}, MmaCut{1, 64}, MmaCut{2, 1}, MmaCut{2, 64}}) {
        const cpu::GroupedProjection p{tokens,
                                       groups,
                                       rank,
                                       inputs,
                                       in.data(),
                                       in_scales.data(),
                                       {m.type, w.data(), scales.data(), groups * rank, inputs},
                                       z.data()};
        z.poison();
        if (cut.warps == 0) {
          run(p, launch.get());
        } else {
          ASSERT_TRUE(fits_mma(p));
          multiply_mma(p, launch.get(), cut);
        }
        const auto got = z.read();
        EXPECT_EQ(z.overrun(), 0);
        for (std::int64_t t = 0; t < tokens; ++t) {
          for (std::int64_t g = 0; g < groups; ++g) {
            double error = 0, size = 0;
            for (std::int64_t r = 0; r < rank; ++r) {
              const auto row = m.row(g * rank + r);
              double want = 0, squares = 0;
              for (std::int64_t k = 0; k < inputs; ++k) {
                const double term =
                    static_cast<double>(cpu::e4m3_to_float(
                        x[static_cast<std::size_t>((t * groups + g) * inputs + k)])) *
                    xs[static_cast<std::size_t>((t * groups + g) * across + k / 128)] *
                    row[static_cast<std::size_t>(k)];
                want += term, squares += term * term;
              }
              const double v =
                  cpu::to_float(got[static_cast<std::size_t>((t * groups + g) * rank + r)]);
              if (t == odd && g == 1) {
                EXPECT_TRUE(std::isnan(v));
                continue;
              }
              // A few outputs whose terms cancel are small for what was rounded on the way.
              error += (v - want) * (v - want), size += std::max(want * want, squares);
            }
            if (t == odd && g == 1) continue;
            EXPECT_LE(std::sqrt(error / size), 1.0 / 128) << t << " " << g << " of " << tokens;
            worst.bf16 = std::max(worst.bf16, std::sqrt(error / size));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace warmgate::kernels::cuda
