#include "harness/engine/parallel/rank_sum.h"

#include <bit>
#include <cstring>
#include <stdexcept>

namespace warmgate::engine {

namespace {

float widen(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

// To nearest, ties to even; NaN stays NaN.
std::uint16_t narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

template <class T>
T load(const std::byte* data, std::size_t i) {
  T out;
  std::memcpy(&out, data + i * sizeof out, sizeof out);
  return out;
}

}  // namespace

void RankSum::assign(Element element, std::size_t bytes) {
  const std::size_t size = element == Element::kBf16 ? 2 : 4;
  if (bytes % size != 0) throw std::invalid_argument("a sum over half an element");
  element_ = element;
  first_ = true;
  sums_.resize(bytes / size);
}

void RankSum::add(const std::byte* data) {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const float value =
        element_ == Element::kBf16 ? widen(load<std::uint16_t>(data, i)) : load<float>(data, i);
    sums_[i] = first_ ? value : sums_[i] + value;  // 0 + -0 would be 0
  }
  first_ = false;
}

void RankSum::round_to(std::byte* data) const {
  if (element_ == Element::kFp32) {
    std::memcpy(data, sums_.data(), sums_.size() * sizeof sums_[0]);
    return;
  }
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const std::uint16_t value = narrow(sums_[i]);
    std::memcpy(data + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace warmgate::engine
