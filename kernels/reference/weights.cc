#include "kernels/reference/weights.h"

#include <stdexcept>

#include "kernels/reference/number.h"

namespace warmgate::reference {
namespace {

std::int64_t blocks(std::int64_t n, std::int64_t block) { return (n + block - 1) / block; }

void want(Bytes bytes, std::int64_t size, const char* what) {
  if (static_cast<std::int64_t>(bytes.size()) != size) {
    throw std::invalid_argument(std::string(what) + ": " + std::to_string(bytes.size()) +
                                " bytes, expected " + std::to_string(size));
  }
}

std::uint8_t byte(Bytes bytes, std::int64_t at) {
  return std::to_integer<std::uint8_t>(bytes[static_cast<std::size_t>(at)]);
}

}  // namespace

Matrix weight_fp8(Bytes values, Bytes scales, std::int64_t rows, std::int64_t cols) {
  want(values, rows * cols, "e4m3 weight");
  want(scales, blocks(rows, 128) * blocks(cols, 128), "block scales");
  Matrix out(rows, cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      const std::int64_t block = r / 128 * blocks(cols, 128) + c / 128;
      out.at(r, c) = e4m3_value(byte(values, r * cols + c)) * ue8m0_value(byte(scales, block));
    }
  }
  return out;
}

Matrix weight_mxfp4(Bytes packed, Bytes scales, std::int64_t rows, std::int64_t cols) {
  want(packed, rows * cols / 2, "e2m1 weight");
  want(scales, rows * blocks(cols, 32), "run scales");
  Matrix out(rows, cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      const std::uint8_t pair = byte(packed, (r * cols + c) / 2);
      const auto nibble = static_cast<std::uint8_t>(c % 2 == 0 ? pair % 16 : pair / 16);
      out.at(r, c) = e2m1_value(nibble) * ue8m0_value(byte(scales, r * blocks(cols, 32) + c / 32));
    }
  }
  return out;
}

Matrix weight_bf16(Bytes values, std::int64_t rows, std::int64_t cols) {
  return Matrix(rows, cols, bf16_values(values));
}

Matrix weight_fp32(Bytes values, std::int64_t rows, std::int64_t cols) {
  return Matrix(rows, cols, fp32_values(values));
}

}  // namespace warmgate::reference
