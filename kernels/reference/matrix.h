// What all oracles take and give: rows of doubles. Slow, plain, obviously right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace warmgate::reference {

using Vector = std::vector<double>;
using View = std::span<const double>;
using Bytes = std::span<const std::byte>;

/// Row-major, rows x cols.
struct Matrix {
  Matrix() = default;
  Matrix(std::int64_t rows, std::int64_t cols);             // zeros
  Matrix(std::int64_t rows, std::int64_t cols, Vector of);  // throws if the sizes disagree

  [[nodiscard]] double at(std::int64_t row, std::int64_t col) const;
  double& at(std::int64_t row, std::int64_t col);
  [[nodiscard]] View row(std::int64_t index) const;
  void set_row(std::int64_t index, View of);

  std::int64_t rows = 0, cols = 0;
  Vector values;
};

}  // namespace warmgate::reference
