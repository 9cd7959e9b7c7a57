// Argument signatures: what a compiler of specialised kernels looks at. Text: one word an argument,
// `dtype[rank]` plus T or F (16-byte aligned pointer), or an integer's class `one`, `div16`, `any`.
// Built once per distinct signature; afterwards a lookup of two words.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "harness/engine/ops/tensor.h"

namespace warmgate::engine {

/// 1 → one, multiple of 16 (0 too) → div16, else any.
enum class IntegerClass : std::uint8_t { kOne, kDiv16, kAny };
constexpr IntegerClass class_of(std::int64_t value) {
  if (value == 1) return IntegerClass::kOne;
  return value % 16 == 0 ? IntegerClass::kDiv16 : IntegerClass::kAny;
}

/// Collects arguments: at most 16, one byte each.
class SignatureKey {
 public:
  void operator()(const Tensor& t) {
    push(static_cast<std::uint64_t>(t.dtype) << 4 | static_cast<std::uint64_t>(t.rank) << 1 |
         (t.aligned16() ? 1u : 0u) | 0x80u);
  }
  void operator()(std::int64_t value) { push(static_cast<std::uint64_t>(class_of(value)) + 1); }
  bool operator==(const SignatureKey&) const = default;
  std::uint64_t hash() const { return (lo_ ^ (hi_ * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu; }
  std::string text() const;

 private:
  void push(std::uint64_t byte) {
    if (count_ < 8) {
      lo_ |= byte << (8 * count_);
    } else {
      hi_ |= byte << (8 * (count_ - 8));
    }
    ++count_;
  }
  std::uint64_t lo_ = 0, hi_ = 0;
  int count_ = 0;
};

/// Signature texts that live as long as the cache; equal keys give the same string object.
class SignatureCache {
 public:
  const std::string& text(const SignatureKey& key);
  std::size_t size() const { return texts_.size(); }

 private:
  struct Slot {
    SignatureKey key;
    const std::string* text = nullptr;
  };
  void insert(const SignatureKey& key, const std::string* text);
  std::vector<Slot> slots_ = std::vector<Slot>(256);
  std::deque<std::string> texts_;
};

}  // namespace warmgate::engine
