// Rows of stored weights, dequantised.
#include <numeric>

#include "harness/engine/checks/read.h"
#include "harness/engine/checks/read_values.h"
#include "harness/engine/ops/cpu_threads.h"
#include "harness/engine/ops/gemm.h"
#include "kernels/reference/linear.h"

namespace warmgate::engine::checks {

using reference::Matrix;
using reference::Vector;

namespace {

/// Stored rows of a weight, their values and scales.
class WeightRows {
 public:
  WeightRows(const Tensor& w, std::span<const std::int64_t> rows, const Tensor& whole,
             std::int64_t index)
      : dtype_(w.dtype), in_(w.last()), count_(rows.size()), at_(pieces(w, rows, whole, index)) {}

  std::int64_t columns() const { return in_; }
  /// Row `r` of those asked for, as doubles.
  void decode(std::size_t r, double* to) const {
    const std::byte *from = at_[r], *scale = at_[count_ + r];
    for (std::int64_t i = 0; i < in_; ++i) {
      if (dtype_ == DType::kFp8) {
        to[i] = in_table(e4m3(), from[i]) * in_table(ue8m0(), scale[i / 128]);
      } else if (dtype_ == DType::kFp4) {
        const auto pair = std::to_integer<unsigned>(from[i / 2]);
        const unsigned nibble = i % 2 == 0 ? pair % 16 : pair / 16;
        to[i] = e2m1()[nibble] * in_table(ue8m0(), scale[i / 32]);
      } else {
        to[i] = value_at(dtype_, from, i);
      }
    }
  }

 private:
  // The values of all rows, then the scales of all rows: what follows each other is one copy.
  static std::vector<Piece> pieces(const Tensor& w, std::span<const std::int64_t> rows,
                                   const Tensor& whole, std::int64_t index) {
    const Tensor& matrix = whole.present() ? whole : w;
    const std::int64_t in = w.last(), out_rows = w.dim(w.rank - 2);
    // Dense, as weights are.
    const std::int64_t row_bytes = in * bits_of(w.dtype) / 8;
    const std::uint64_t values = w.address + offset(index * out_rows * row_bytes);
    const std::int64_t first =
        static_cast<std::int64_t>(values - matrix.address) * 8 / bits_of(w.dtype) / in -
        index * out_rows;
    const std::uint64_t scales = matrix.address + offset(matrix.payload_bytes());
    const std::int64_t blocks = ceil_div(in, 128);
    std::vector<Piece> out;
    for (const std::int64_t row : rows) {
      // Runs of 32 values over the whole tensor; rows are multiples of that.
      const std::int64_t start = (index * out_rows + first + row) * in;
      out.push_back(w.dtype == DType::kFp4 ? Piece{matrix.address + offset(start / 2), in / 2}
                                           : Piece{values + offset(row * row_bytes), row_bytes});
    }
    for (const std::int64_t row : rows) {
      const std::int64_t start = (index * out_rows + first + row) * in;
      const std::int64_t block = index * ceil_div(out_rows, 128) + (first + row) / 128;
      out.push_back(w.dtype == DType::kFp8   ? Piece{scales + offset(block * blocks), blocks}
                    : w.dtype == DType::kFp4 ? Piece{scales + offset(start / 32), in / 32}
                                             : Piece{values, 0});
    }
    return out;
  }
  DType dtype_;
  std::int64_t in_;
  std::size_t count_;
  Looks at_;
};

}  // namespace

Matrix weight_rows(const Tensor& w, std::span<const std::int64_t> rows, const Tensor& whole,
                   std::int64_t index) {
  const WeightRows stored(w, rows, whole, index);
  Matrix out(static_cast<std::int64_t>(rows.size()), stored.columns());
  for (std::size_t r = 0; r < rows.size(); ++r)
    stored.decode(r, &out.at(static_cast<std::int64_t>(r), 0));
  return out;
}

Vector project_stored(reference::View x, const Tensor& w) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(w.dim(w.rank - 2)));
  std::iota(rows.begin(), rows.end(), 0);
  const WeightRows stored(w, rows, {}, 0);
  Vector out(rows.size());
  const auto count = static_cast<std::int64_t>(rows.size());
  ops::host::share_rows(count, 1, count * w.last(), [&](std::int64_t begin, std::int64_t end) {
    Vector row(static_cast<std::size_t>(w.last()));
    for (auto r = static_cast<std::size_t>(begin); r < static_cast<std::size_t>(end); ++r) {
      stored.decode(r, row.data());
      out[r] = reference::dot(x, row);
    }
  });
  return out;
}

}  // namespace warmgate::engine::checks
