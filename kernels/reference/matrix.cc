#include "kernels/reference/matrix.h"

#include <algorithm>
#include <stdexcept>

namespace warmgate::reference {

Matrix::Matrix(std::int64_t row_count, std::int64_t col_count)
    : Matrix(row_count, col_count, Vector(static_cast<std::size_t>(row_count * col_count), 0.0)) {}

Matrix::Matrix(std::int64_t row_count, std::int64_t col_count, Vector of)
    : rows(row_count), cols(col_count), values(std::move(of)) {
  if (rows < 0 || cols < 0 || static_cast<std::int64_t>(values.size()) != rows * cols) {
    throw std::invalid_argument("matrix: size does not match rows x cols");
  }
}

double Matrix::at(std::int64_t r, std::int64_t c) const {
  return row(r)[static_cast<std::size_t>(c)];
}

double& Matrix::at(std::int64_t r, std::int64_t c) {
  return values.at(static_cast<std::size_t>(r * cols + c));
}

View Matrix::row(std::int64_t index) const {
  if (index < 0 || index >= rows) throw std::out_of_range("matrix: no such row");
  return View(values).subspan(static_cast<std::size_t>(index * cols),
                              static_cast<std::size_t>(cols));
}

void Matrix::set_row(std::int64_t index, View of) {
  if (index < 0 || index >= rows || static_cast<std::int64_t>(of.size()) != cols) {
    throw std::out_of_range("matrix: row does not fit");
  }
  std::copy(of.begin(), of.end(), values.begin() + static_cast<std::ptrdiff_t>(index * cols));
}

}  // namespace warmgate::reference
