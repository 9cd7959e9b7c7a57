#include "harness/engine/checks/read.h"

#include <algorithm>

#include "harness/engine/checks/read_values.h"

namespace warmgate::engine::checks {

using reference::Bytes;
using reference::Matrix;
using reference::Vector;

namespace {

std::int64_t row_elements(const Tensor& t) {
  return t.elements() / std::max<std::int64_t>(t.rows(), 1);
}

Piece piece_of(const Tensor& t, std::int64_t row) {
  if (row < 0 || row >= t.rows()) throw std::out_of_range("a check reads a row that is not there");
  return {t.address + offset(row * t.strides[0] * bits_of(t.dtype) / 8),
          (row_elements(t) * bits_of(t.dtype) + 7) / 8};
}
Look look_at_row(const Tensor& t, std::int64_t row) {
  const Piece piece = piece_of(t, row);
  return {piece.address, piece.bytes};
}

}  // namespace

Vector row_of(const Tensor& t, std::int64_t row) {
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
  std::vector<Piece> pieces;
  for (const std::int64_t row : rows) pieces.push_back(piece_of(t, row));
  const Looks at(pieces);
  for (std::int64_t i = 0; i < out.rows; ++i) {
    for (std::int64_t k = 0; k < out.cols; ++k)
      out.at(i, k) = value_at(t.dtype, at[static_cast<std::size_t>(i)], k);
  }
  return out;
}

std::int64_t poisoned(const Tensor& t, std::int64_t rows, std::int64_t most) {
  const std::int64_t width = row_elements(t);
  rows = std::min(rows, t.rows());
  const std::int64_t every = std::max<std::int64_t>(1, ceil_div(rows * width, most));
  std::int64_t count = 0;
  std::vector<Piece> pieces;
  for (std::int64_t row = 0; row < rows; row += every) pieces.push_back(piece_of(t, row));
  const Looks looks(pieces);
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const std::byte* at = looks[piece];
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
