// What the tests of this folder share: fresh random inputs, quantised queries and keys, pages.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/indexer.h"
#include "kernels/cuda/test_device.h"

namespace warmgate::kernels::cuda {

/// A test with a seed of its own; WARMGATE_SEED repeats one.
class IndexerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* given = std::getenv("WARMGATE_SEED");
    seed_ = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    rng_.seed(seed_);
    if (const std::string why = no_gpu(); !why.empty()) GTEST_SKIP() << why;
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
  }
  /// 0..n-1.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(rng_() % static_cast<std::uint64_t>(n));
  }
  float normal(float sigma = 1) { return sigma * std::normal_distribution<float>()(rng_); }
  std::vector<float> floats(std::int64_t n, float sigma = 1) {
    std::vector<float> out(static_cast<std::size_t>(n));
    for (float& v : out) v = normal(sigma);
    return out;
  }
  std::vector<cpu::Bf16> bf16s(std::int64_t n, float sigma = 1) {
    std::vector<cpu::Bf16> out(static_cast<std::size_t>(n));
    for (cpu::Bf16& v : out) v = cpu::to_bf16(normal(sigma));
    return out;
  }
  /// A random order of 0..n-1.
  std::vector<std::int32_t> shuffled(std::int64_t n) {
    std::vector<std::int32_t> out(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int32_t>(i);
    std::shuffle(out.begin(), out.end(), rng_);
    return out;
  }
  std::mt19937_64& rng() { return rng_; }

 private:
  std::uint64_t seed_ = 0;
  std::mt19937_64 rng_;
};

/// A GPU is there but not one for the path under test.
#define WG_NEEDS_HOPPER(launch) \
  if ((launch).arch != 90) GTEST_SKIP() << "arch is " << (launch).arch << ", not 90"

template <class T>
std::int64_t first_difference(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return static_cast<std::int64_t>(i);
  }
  return -1;
}

/// Pages of indexer keys on the host, poisoned but for the rows that were put.
struct KeyPages {
  KeyPages(cpu::IndexFormat format_in, std::int64_t count, std::int64_t rows_in,
           std::int64_t padding)
      : format(format_in),
        rows(rows_in),
        stride(rows_in * (cpu::index_value_bytes(format_in) + 4) + padding),
        bytes(static_cast<std::size_t>(count * stride), 0xFF) {}
  void put(std::int64_t slot, const float* channels) {
    std::uint8_t* page = bytes.data() + slot / rows * stride;
    const std::int64_t width = cpu::index_value_bytes(format);
    cpu::encode_index_row(format, channels, page + slot % rows * width,
                          page + rows * width + slot % rows * 4);
  }
  cpu::Pages at(std::uint8_t* base) const { return {base, stride, rows}; }
  cpu::IndexFormat format;
  std::int64_t rows, stride;
  std::vector<std::uint8_t> bytes;
};

}  // namespace warmgate::kernels::cuda
