// What the tests of kernels/cpu share: fresh random inputs and poisoned memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/formats.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/pages.h"
#include "kernels/cpu/variant.h"

namespace warmgate::kernels::cpu {

/// A test fixture with its own seed, printed if the test fails; WARMGATE_TEST_SEED repeats one.
class RandomTest : public ::testing::Test {
 protected:
  RandomTest() {
    const char* given = std::getenv("WARMGATE_TEST_SEED");
    seed_ = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    rng_.seed(seed_);
  }
  ~RandomTest() override {
    force_variant(best_);
    if (HasFailure()) ADD_FAILURE() << "WARMGATE_TEST_SEED=" << seed_;
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
  std::vector<Bf16> bf16s(std::int64_t n, float sigma = 1) {
    std::vector<Bf16> out(static_cast<std::size_t>(n));
    for (Bf16& v : out) v = to_bf16(normal(sigma));
    return out;
  }
  /// Bytes that are no e4m3 NaN.
  std::vector<std::uint8_t> e4m3s(std::int64_t n) {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(n));
    for (std::uint8_t& v : out) {
      do v = static_cast<std::uint8_t>(below(256));
      while ((v & 0x7F) == 0x7F);
    }
    return out;
  }
  std::vector<std::uint8_t> bytes(std::int64_t n, int low, int high) {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(n));
    for (std::uint8_t& v : out) v = static_cast<std::uint8_t>(low + below(high - low + 1));
    return out;
  }
  /// A random order of first..first+n-1.
  std::vector<std::int32_t> shuffled(std::int64_t n, std::int32_t first = 0) {
    std::vector<std::int32_t> out(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = first + static_cast<std::int32_t>(i);
    for (std::size_t i = out.size(); i > 1; --i) {
      std::swap(out[i - 1], out[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    }
    return out;
  }

 private:
  std::uint64_t seed_ = 0;
  Variant best_ = variant();
  std::mt19937_64 rng_;
};

/// n elements of 0xFF bytes: NaN in every float format, -1 in every integer.
template <class T>
std::vector<T> poisoned(std::int64_t n) {
  std::vector<T> out(static_cast<std::size_t>(n));
  std::memset(static_cast<void*>(out.data()), 0xFF, out.size() * sizeof(T));
  return out;
}

template <class T>
bool is_poison(const T& value) {
  T poison;
  std::memset(&poison, 0xFF, sizeof poison);
  return std::memcmp(&value, &poison, sizeof poison) == 0;
}

template <class T>
::testing::AssertionResult same_bits(const T* a, const T* b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (std::memcmp(a + i, b + i, sizeof(T)) != 0) {
      return ::testing::AssertionFailure() << "first difference at element " << i << " of " << n;
    }
  }
  return ::testing::AssertionSuccess();
}
template <class T>
::testing::AssertionResult same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " : " << b.size();
  return same_bits(a.data(), b.data(), static_cast<std::int64_t>(a.size()));
}

/// Pages with their memory, poisoned; `padding` bytes behind each page.
struct PageMemory {
  PageMemory(std::int64_t count, std::int64_t rows, std::int64_t row_bytes, std::int64_t padding)
      : memory(poisoned<std::uint8_t>(count * (rows * row_bytes + padding))),
        pages{memory.data(), rows * row_bytes + padding, rows} {}
  std::vector<std::uint8_t> memory;
  Pages pages;
};

}  // namespace warmgate::kernels::cpu
