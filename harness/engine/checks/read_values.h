// What checks read of memory, as doubles: tables of the small formats, and bytes of the device.
#pragma once

#include <array>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/engine/ops/device.h"
#include "harness/engine/ops/tensor.h"
#include "kernels/reference/number.h"

namespace warmgate::engine::checks {

template <class T>
T load(const std::byte* at) {
  T out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

/// Bytes at an address, on the host as long as this lives.
class Look {
 public:
  Look(std::uint64_t address, std::int64_t bytes) : data_(look_at(address, bytes, copy_)) {}
  const std::byte* data() const { return data_; }

 private:
  std::vector<std::byte> copy_;
  const std::byte* data_;
};

/// Several pieces, on the host as long as this lives.
class Looks {
 public:
  explicit Looks(std::span<const Piece> pieces) : data_(look_at(pieces, copy_)) {}
  const std::byte* operator[](std::size_t piece) const { return data_[piece]; }

 private:
  std::vector<std::byte> copy_;
  std::vector<const std::byte*> data_;
};

inline std::uint64_t offset(std::int64_t bytes) { return static_cast<std::uint64_t>(bytes); }

inline double bf16_at(const std::byte* at) {
  const std::uint32_t bits = std::uint32_t{load<std::uint16_t>(at)} << 16;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

using Table = std::array<double, 256>;
template <class Value>
Table table_of(Value&& value) {
  Table out;
  for (std::size_t code = 0; code < out.size(); ++code) {
    out[code] = value(static_cast<std::uint8_t>(code));
  }
  return out;
}
inline const Table& e4m3() {
  static const Table table = table_of(reference::e4m3_value);
  return table;
}
inline const Table& ue8m0() {
  static const Table table = table_of(reference::ue8m0_value);
  return table;
}
inline const Table& e2m1() {
  static const Table table = table_of(reference::e2m1_value);
  return table;
}
inline double in_table(const Table& table, std::byte code) {
  return table[std::to_integer<std::size_t>(code)];
}

inline double value_at(DType dtype, const std::byte* row, std::int64_t i) {
  switch (dtype) {
    case DType::kBf16:
      return bf16_at(row + 2 * i);
    case DType::kFp32:
      return load<float>(row + 4 * i);
    case DType::kFp8:
      return in_table(e4m3(), row[i]);
    case DType::kI32:
      return load<std::int32_t>(row + 4 * i);
    default:
      throw std::logic_error("a check reads " + std::string(to_string(dtype)));
  }
}

}  // namespace warmgate::engine::checks
