// Fresh random inputs for the tests of this folder; the seed is printed, WARMGATE_SEED sets it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/formats.h"
#include "kernels/cuda/test_device.h"

namespace warmgate::kernels::cuda {

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_gpu(); !why.empty()) GTEST_SKIP() << why;
    const char* set = std::getenv("WARMGATE_SEED");
    seed_ = set != nullptr
                ? std::strtoull(set, nullptr, 10)
                : static_cast<std::uint64_t>(
                      std::chrono::system_clock::now().time_since_epoch().count() % 1000000007);
    random.seed(seed_);
  }
  void TearDown() override {
    if (HasFailure()) std::printf("WARMGATE_SEED=%llu\n", static_cast<unsigned long long>(seed_));
  }
  std::int64_t integer(std::int64_t first, std::int64_t last) {
    return std::uniform_int_distribution<std::int64_t>(first, last)(random);
  }
  std::vector<float> floats(std::int64_t count, float scale = 1) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& v : out) v = normal(random);
    return out;
  }
  std::vector<cpu::Bf16> bf16s(std::int64_t count, float scale = 1) {
    std::vector<cpu::Bf16> out;
    for (const float v : floats(count, scale)) out.push_back(cpu::to_bf16(v));
    return out;
  }
  std::vector<std::uint8_t> e4m3s(std::int64_t count) {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(count));
    for (auto& v : out) v = static_cast<std::uint8_t>(integer(0, 126) + 128 * integer(0, 1));
    return out;
  }
  std::mt19937_64 random;

 private:
  std::uint64_t seed_ = 0;
};

/// Elements whose bits differ.
template <class T>
std::int64_t differ(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return static_cast<std::int64_t>(std::max(a.size(), b.size()));
  std::int64_t out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) out += std::memcmp(&a[i], &b[i], sizeof(T)) != 0;
  return out;
}

/// ‖a − b‖ / ‖b‖ of the worst row of `width`; NaN gives infinity.
inline double worst_row(const std::vector<cpu::Bf16>& a, const std::vector<cpu::Bf16>& b,
                        std::int64_t width) {
  double worst = 0;
  const auto columns = static_cast<std::size_t>(width);
  for (std::size_t first = 0; first + columns <= b.size(); first += columns) {
    double error = 0, size = 0;
    for (std::size_t i = first; i < first + columns; ++i) {
      const double x = cpu::to_float(a[i]), y = cpu::to_float(b[i]);
      error += (x - y) * (x - y), size += y * y;
    }
    const double row = std::sqrt(error / size);
    worst = row <= 1e300 ? std::max(worst, row) : INFINITY;
  }
  return worst;
}

}  // namespace warmgate::kernels::cuda
