// A tensor as the engine knows it: dtype, shape, strides, address range. Never contents.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace warmgate::engine {

enum class DType : std::uint8_t { kBf16, kFp32, kFp8, kFp4, kU8, kI32, kI64, kBool };

/// Bits of one element; fp4 packs two into a byte.
constexpr std::int64_t bits_of(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return 16;
    case DType::kFp32:
      return 32;
    case DType::kFp8:
      return 8;
    case DType::kFp4:
      return 4;
    case DType::kU8:
      return 8;
    case DType::kI32:
      return 32;
    case DType::kI64:
      return 64;
    case DType::kBool:
      return 8;
  }
  return 8;
}
std::string_view to_string(DType dtype);

constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit;
}
constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return ceil_div(value, unit) * unit;
}
/// 1 for values up to 1.
constexpr std::int64_t pow2_at_least(std::int64_t value) {
  std::int64_t power = 1;
  while (power < value) power *= 2;
  return power;
}

using Shape = std::initializer_list<std::int64_t>;

struct Tensor {
  static constexpr int kMaxRank = 4;
  DType dtype = DType::kBf16;
  std::uint8_t rank = 0;  // 0: absent
  std::array<std::int64_t, kMaxRank> shape{};
  std::array<std::int64_t, kMaxRank> strides{};  // in elements
  std::uint64_t address = 0;
  std::int64_t bytes = 0;  // of the address range that the view spans

  bool present() const { return rank > 0; }
  std::int64_t rows() const { return shape[0]; }
  std::int64_t dim(int i) const { return shape[static_cast<std::size_t>(i)]; }
  std::int64_t last() const { return shape[static_cast<std::size_t>(rank - 1)]; }
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[static_cast<std::size_t>(i)];
    return n;
  }
  /// Bytes of the elements themselves (a view with gaps spans more).
  std::int64_t payload_bytes() const { return (elements() * bits_of(dtype) + 7) / 8; }
  bool aligned16() const { return address % 16 == 0; }
  /// [count, ...] from row `begin`; the caller keeps begin + count within rows().
  Tensor slice(std::int64_t begin, std::int64_t count) const {
    Tensor out = *this;
    out.address += static_cast<std::uint64_t>(begin * strides[0] * bits_of(dtype) / 8);
    out.shape[0] = count;
    out.bytes = count * strides[0] * bits_of(dtype) / 8;
    return out;
  }
  /// The first `width` columns of each row; strides stay.
  Tensor narrow_last(std::int64_t width) const {
    Tensor out = *this;
    out.shape[static_cast<std::size_t>(rank - 1)] = width;
    return out;
  }
};

/// Contiguous.
inline Tensor make_tensor(DType dtype, Shape shape, std::uint64_t address = 0) {
  Tensor t;
  t.dtype = dtype;
  t.address = address;
  for (const std::int64_t n : shape) t.shape[t.rank++] = n;
  std::int64_t stride = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    t.strides[static_cast<std::size_t>(i)] = stride;
    stride *= t.shape[static_cast<std::size_t>(i)];
  }
  t.bytes = (stride * bits_of(dtype) + 7) / 8;
  return t;
}

}  // namespace warmgate::engine
