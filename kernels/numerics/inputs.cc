#include "kernels/numerics/inputs.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <numeric>

#include "kernels/reference/number.h"

namespace warmgate::numerics {

std::uint64_t fresh_seed() {
  if (const char* set = std::getenv("WARMGATE_SEED"); set != nullptr && *set != 0) {
    return std::strtoull(set, nullptr, 10);
  }
  static const auto seed = static_cast<std::uint64_t>(
      std::chrono::system_clock::now().time_since_epoch().count() / 1000 % 1000000007);
  return seed;
}

Random::Random(std::uint64_t seed, const std::string& name) {
  std::vector<std::uint32_t> words{static_cast<std::uint32_t>(seed),
                                   static_cast<std::uint32_t>(seed >> 32)};
  for (const char c : name) words.push_back(static_cast<unsigned char>(c));
  std::seed_seq sequence(words.begin(), words.end());
  engine_.seed(sequence);
}

double Random::normal(double scale) {
  return std::normal_distribution<double>(0, 1)(engine_) * scale;
}

std::int64_t Random::integer(std::int64_t first, std::int64_t last) {
  return std::uniform_int_distribution<std::int64_t>(first, last)(engine_);
}

std::vector<Bf16> Random::bf16(std::int64_t count, double scale) {
  std::vector<Bf16> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(normal(scale)));
    out.push_back(static_cast<Bf16>(bits >> 16));
  }
  return out;
}

std::vector<float> Random::fp32(std::int64_t count, double scale) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(static_cast<float>(normal(scale)));
  return out;
}

std::vector<std::uint8_t> Random::e4m3(std::int64_t count) {
  std::vector<std::uint8_t> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<std::uint8_t>(integer(0, 126) + 128 * integer(0, 1)));
  }
  return out;
}

std::vector<std::uint8_t> Random::scales(std::int64_t count, int first, int last) {
  std::vector<std::uint8_t> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<std::uint8_t>(127 + integer(first, last)));
  }
  return out;
}

std::vector<std::int64_t> Random::choose(std::int64_t count, std::int64_t below) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(below));
  std::iota(out.begin(), out.end(), 0);
  std::shuffle(out.begin(), out.end(), engine_);
  out.resize(static_cast<std::size_t>(std::min(count, below)));
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::int32_t> Random::order(std::int64_t count) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 1);
  std::shuffle(out.begin(), out.end(), engine_);
  return out;
}

reference::Vector from_bf16(std::span<const Bf16> values) {
  return reference::bf16_values(std::as_bytes(values));
}

reference::Vector from_fp32(std::span<const float> values) {
  return reference::fp32_values(std::as_bytes(values));
}

reference::Matrix rows_bf16(std::span<const Bf16> values, std::int64_t cols) {
  return {static_cast<std::int64_t>(values.size()) / cols, cols, from_bf16(values)};
}

reference::Matrix rows_fp32(std::span<const float> values, std::int64_t cols) {
  return {static_cast<std::int64_t>(values.size()) / cols, cols, from_fp32(values)};
}

}  // namespace warmgate::numerics
