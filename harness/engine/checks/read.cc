#include "harness/engine/checks/read.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "harness/engine/ops/cpu_threads.h"
#include "harness/engine/ops/device.h"
#include "harness/engine/ops/gemm.h"
#include "kernels/reference/number.h"

namespace warmgate::engine::checks {

using reference::Bytes;
using reference::Matrix;
using reference::Vector;

namespace {

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

std::uint64_t offset(std::int64_t bytes) { return static_cast<std::uint64_t>(bytes); }

double bf16_at(const std::byte* at) {
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
const Table& e4m3() {
  static const Table table = table_of(reference::e4m3_value);
  return table;
}
const Table& ue8m0() {
  static const Table table = table_of(reference::ue8m0_value);
  return table;
}
const Table& e2m1() {
  static const Table table = table_of(reference::e2m1_value);
  return table;
}
double in_table(const Table& table, std::byte code) {
  return table[std::to_integer<std::size_t>(code)];
}

double value_at(DType dtype, const std::byte* row, std::int64_t i) {
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

std::int64_t row_elements(const Tensor& t) {
  return t.elements() / std::max<std::int64_t>(t.rows(), 1);
}

Look look_at_row(const Tensor& t, std::int64_t row) {
  return {t.address + offset(row * t.strides[0] * bits_of(t.dtype) / 8),
          (row_elements(t) * bits_of(t.dtype) + 7) / 8};
}

}  // namespace

Vector row_of(const Tensor& t, std::int64_t row) {
  if (row < 0 || row >= t.rows()) throw std::out_of_range("a check reads a row that is not there");
  Vector out(static_cast<std::size_t>(row_elements(t)));
  const Look at = look_at_row(t, row);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = value_at(t.dtype, at.data(), static_cast<std::int64_t>(i));
  }
  return out;
}

Vector all_of(const Tensor& t) {
  return row_of(make_tensor(t.dtype, {1, t.elements()}, t.address), 0);
}

Vector fp4_row(const Tensor& t, const Tensor& scales, std::int64_t row) {
  Vector out(static_cast<std::size_t>(row_elements(t)));
  const Look code_row = look_at_row(t, row), scale_row = look_at_row(scales, row);
  const std::byte *codes = code_row.data(), *scale = scale_row.data();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto pair = std::to_integer<unsigned>(codes[i / 2]);
    out[i] = e2m1()[i % 2 == 0 ? pair % 16 : pair / 16] * in_table(ue8m0(), scale[i / 32]);
  }
  return out;
}

Matrix rows_of(const Tensor& t, std::span<const std::int64_t> rows) {
  Matrix out(static_cast<std::int64_t>(rows.size()), row_elements(t));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.set_row(static_cast<std::int64_t>(i), row_of(t, rows[i]));
  }
  return out;
}

Matrix weight_rows(const Tensor& w, std::span<const std::int64_t> rows, const Tensor& whole,
                   std::int64_t index) {
  const Tensor& matrix = whole.present() ? whole : w;
  const std::int64_t in = w.last(), out_rows = w.dim(w.rank - 2);
  // Dense, as weights are.
  const std::uint64_t values = w.address + offset(index * out_rows * in * bits_of(w.dtype) / 8);
  std::uint64_t scales = matrix.address + offset(matrix.payload_bytes());
  const std::int64_t first =
      static_cast<std::int64_t>(values - matrix.address) * 8 / bits_of(w.dtype) / in -
      index * out_rows;
  const std::int64_t columns = ceil_div(in, 128);
  if (w.dtype == DType::kFp8) scales += offset(index * ceil_div(out_rows, 128) * columns);
  Matrix out(static_cast<std::int64_t>(rows.size()), in);
  // A whole matrix of fp8 in one look, where all its rows are wanted.
  const bool whole_fp8 =
      w.dtype == DType::kFp8 && static_cast<std::int64_t>(rows.size()) == out_rows;
  const std::int64_t blocks = whole_fp8 ? (first + out_rows - 1) / 128 - first / 128 + 1 : 0;
  const Look all(values, whole_fp8 ? out_rows * in : 0);
  const Look all_scales(scales + offset(whole_fp8 ? first / 128 * columns : 0), blocks * columns);
  if (whole_fp8) {
    ops::host::share_rows(out.rows, 1, out.rows * in, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const std::int64_t row = rows[static_cast<std::size_t>(r)];
        const std::byte* from = all.data() + row * in;
        const std::byte* scale = all_scales.data() + ((first + row) / 128 - first / 128) * columns;
        double* to = &out.at(r, 0);
        for (std::int64_t i = 0; i < in; ++i)
          to[i] = in_table(e4m3(), from[i]) * in_table(ue8m0(), scale[i / 128]);
      }
    });
    return out;
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::int64_t row = rows[r];
    double* to = &out.at(static_cast<std::int64_t>(r), 0);
    if (w.dtype == DType::kFp8) {
      const Look from(values + offset(row * in), in);
      const Look scale(scales + offset((first + row) / 128 * columns), columns);
      for (std::int64_t i = 0; i < in; ++i) {
        to[i] = in_table(e4m3(), from.data()[i]) * in_table(ue8m0(), scale.data()[i / 128]);
      }
    } else if (w.dtype == DType::kFp4) {
      // Runs of 32 values over the whole tensor; rows are multiples of that.
      const std::int64_t start = (index * out_rows + first + row) * in;
      const Look from(matrix.address + offset(start / 2), in / 2);
      const Look scale(scales + offset(start / 32), in / 32);
      for (std::int64_t i = 0; i < in; ++i) {
        const auto pair = std::to_integer<unsigned>(from.data()[i / 2]);
        const unsigned nibble = i % 2 == 0 ? pair % 16 : pair / 16;
        to[i] = e2m1()[nibble] * in_table(ue8m0(), scale.data()[i / 32]);
      }
    } else {
      const std::int64_t bytes = in * bits_of(w.dtype) / 8;
      const Look from(values + offset(row * bytes), bytes);
      for (std::int64_t i = 0; i < in; ++i) to[i] = value_at(w.dtype, from.data(), i);
    }
  }
  return out;
}

std::int64_t poisoned(const Tensor& t, std::int64_t rows, std::int64_t most) {
  const std::int64_t width = row_elements(t);
  rows = std::min(rows, t.rows());
  const std::int64_t every = std::max<std::int64_t>(1, ceil_div(rows * width, most));
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < rows; row += every) {
    const Look look = look_at_row(t, row);
    const std::byte* at = look.data();
    for (std::int64_t i = 0; i < width; ++i) {
      switch (t.dtype) {
        case DType::kBf16:
          count += (load<std::uint16_t>(at + 2 * i) & 0x7fffu) > 0x7f80u;
          break;
        case DType::kFp32:
          count += (load<std::uint32_t>(at + 4 * i) & 0x7fffffffu) > 0x7f800000u;
          break;
        case DType::kFp8:
          count += (std::to_integer<unsigned>(at[i]) & 0x7fu) == 0x7fu;
          break;
        default:
          return 0;
      }
    }
  }
  return count;
}

PageReader::PageReader(const Tensor& view)
    : view_(view), stride_(view.strides[0] * bits_of(view.dtype) / 8) {}

reference::Bytes PageReader::page(std::int64_t block) {
  if (block < 0 || block >= view_.rows()) throw std::out_of_range("cache: no such block");
  if (block != block_) {
    block_ = block;
    const std::int64_t bytes = std::min(stride_, view_.bytes - block * stride_);
    bytes_ = {look_at(view_.address + offset(block * stride_), bytes, copy_),
              static_cast<std::size_t>(bytes)};
  }
  return bytes_;
}

Matrix keys_at(const Tensor& view, std::span<const std::int32_t> table,
               std::span<const std::int64_t> indices) {
  PageReader pages(view);
  Matrix out(static_cast<std::int64_t>(indices.size()), reference::kHeadDim);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const reference::Place at = reference::place(table, pages.rows(), indices[i]);
    const Bytes page = pages.page(at.block);
    const std::byte* data = page.data() + at.row * reference::kDataBytes;
    const std::byte* scale =
        page.data() + pages.rows() * reference::kDataBytes + at.row * reference::kScaleBytes;
    double* to = &out.at(static_cast<std::int64_t>(i), 0);
    for (std::int64_t c = 0; c < reference::kNope; ++c) {
      to[c] = in_table(e4m3(), data[c]) * in_table(ue8m0(), scale[c / 64]);
    }
    for (std::int64_t c = 0; c < reference::kRopeDims; ++c) {
      to[reference::kNope + c] = bf16_at(data + reference::kNope + 2 * c);
    }
  }
  return out;
}

Matrix index_keys_at(const Tensor& view, std::span<const std::int32_t> table, std::int64_t count,
                     bool fp4) {
  constexpr std::int64_t kChannels = 128, kScale = 4;
  const std::int64_t bytes = fp4 ? kChannels / 2 : kChannels;
  PageReader pages(view);
  Matrix out(count, kChannels);
  for (std::int64_t j = 0; j < count; ++j) {
    const reference::Place at = reference::place(table, pages.rows(), j);
    const Bytes page = pages.page(at.block);
    const std::byte* data = page.data() + at.row * bytes;
    const std::byte* scale = page.data() + pages.rows() * bytes + at.row * kScale;
    double* to = &out.at(j, 0);
    for (std::int64_t c = 0; c < kChannels; ++c) {
      if (fp4) {
        const auto pair = std::to_integer<unsigned>(data[c / 2]);
        to[c] = e2m1()[c % 2 == 0 ? pair % 16 : pair / 16] * in_table(ue8m0(), scale[c / 32]);
      } else {
        to[c] = in_table(e4m3(), data[c]) * double{load<float>(scale)};
      }
    }
  }
  return out;
}

Vector state_at(const Tensor& view, std::span<const std::int32_t> table, std::int64_t position) {
  const reference::Place at = reference::place(table, view.dim(1), position);
  if (at.block >= view.rows()) throw std::out_of_range("cache: no such block");
  Tensor rows = make_tensor(view.dtype, {view.dim(1), view.dim(2)},
                            view.address + static_cast<std::uint64_t>(at.block * view.strides[0] *
                                                                      bits_of(view.dtype) / 8));
  return row_of(rows, at.row);
}

}  // namespace warmgate::engine::checks
