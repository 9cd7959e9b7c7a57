// Fresh random inputs, and output memory that shows what was and was not written.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/reference/matrix.h"

namespace warmgate::numerics {

using Bf16 = std::uint16_t;

/// WARMGATE_SEED, else the clock.
std::uint64_t fresh_seed();

class Random {
 public:
  /// Each case draws from its own stream of the run's seed.
  Random(std::uint64_t seed, const std::string& name);
  double normal(double scale = 1);
  /// In first..last, both included.
  std::int64_t integer(std::int64_t first, std::int64_t last);
  /// normal values cut to bf16.
  std::vector<Bf16> bf16(std::int64_t count, double scale = 1);
  std::vector<float> fp32(std::int64_t count, double scale = 1);
  /// Any e4m3 codes but NaN.
  std::vector<std::uint8_t> e4m3(std::int64_t count);
  /// ue8m0 bytes of 2^first .. 2^last.
  std::vector<std::uint8_t> scales(std::int64_t count, int first, int last);
  /// `count` different numbers of 0..below-1, ascending.
  std::vector<std::int64_t> choose(std::int64_t count, std::int64_t below);
  /// 1..count in random order.
  std::vector<std::int32_t> order(std::int64_t count);

 private:
  std::mt19937_64 engine_;
};

template <typename T>
reference::Bytes bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
reference::Vector from_bf16(std::span<const Bf16> values);
reference::Vector from_fp32(std::span<const float> values);
reference::Matrix rows_bf16(std::span<const Bf16> values, std::int64_t cols);
reference::Matrix rows_fp32(std::span<const float> values, std::int64_t cols);

// What poison a type's output is filled with: NaN for floating point (e4m3 as well), a large number
// that is no index for integers.
template <typename T>
constexpr std::uint8_t poison_of() {
  return std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t> ? 0x5B : 0xFF;
}

/// `count` elements of poison between two guards.
template <typename T>
class Output {
 public:
  explicit Output(std::int64_t count, std::uint8_t poison = poison_of<T>())
      : poison_(poison), count_(static_cast<std::size_t>(count)) {
    memory_.resize(count_ + 2 * kGuard);
    std::memset(memory_.data(), poison_, memory_.size() * sizeof(T));
  }
  T* data() { return memory_.data() + kGuard; }
  [[nodiscard]] std::span<const T> view() const {
    return std::span(memory_).subspan(kGuard, count_);
  }
  [[nodiscard]] std::vector<T> copy() const { return {view().begin(), view().end()}; }
  const T& operator[](std::int64_t i) const { return view()[static_cast<std::size_t>(i)]; }
  /// Elements of first .. first + count - 1 that nobody wrote.
  [[nodiscard]] std::int64_t unwritten(std::int64_t first, std::int64_t count) const {
    std::int64_t out = 0;
    for (std::int64_t i = first; i < first + count; ++i) out += is_poison((*this)[i]) ? 1 : 0;
    return out;
  }
  /// Elements there that somebody wrote.
  [[nodiscard]] std::int64_t written(std::int64_t first, std::int64_t count) const {
    return count - unwritten(first, count);
  }
  /// Guard elements that somebody wrote.
  [[nodiscard]] std::int64_t overrun() const {
    std::int64_t out = 0;
    for (std::size_t i = 0; i < kGuard; ++i) {
      out += is_poison(memory_[i]) ? 0 : 1;
      out += is_poison(memory_[kGuard + count_ + i]) ? 0 : 1;
    }
    return out;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  [[nodiscard]] bool is_poison(const T& value) const {
    unsigned char want[sizeof(T)];
    std::memset(want, poison_, sizeof(T));
    return std::memcmp(&value, want, sizeof(T)) == 0;
  }
  std::uint8_t poison_;
  std::size_t count_;
  std::vector<T> memory_;
};

/// Elements that differ, bit by bit; different sizes count as all.
template <typename A, typename B>
std::int64_t differing(const A& a, const B& b) {
  if (a.size() != b.size()) return static_cast<std::int64_t>(std::max(a.size(), b.size()));
  std::int64_t out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) out += a[i] == b[i] ? 0 : 1;
  return out;
}

}  // namespace warmgate::numerics
