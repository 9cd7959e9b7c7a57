#include "kernels/reference/cache.h"

#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "kernels/reference/number.h"
#include "kernels/reference/quantise.h"

namespace warmgate::reference {
namespace {

constexpr double kFloor = 1e-4;

// The bytes of row `row` in a page of `rows` rows: first all rows' data, then all rows' scales.
template <typename Row>
Row row_of(Bytes page, std::int64_t rows, std::int64_t row) {
  Row out;
  const auto data = static_cast<std::int64_t>(out.data.size());
  const auto scale = static_cast<std::int64_t>(out.scale.size());
  if (row < 0 || row >= rows) throw std::out_of_range("cache page: no such row");
  if (static_cast<std::int64_t>(page.size()) < rows * (data + scale)) {
    throw std::out_of_range("cache page: shorter than its rows");
  }
  for (std::int64_t i = 0; i < data; ++i) {
    out.data[static_cast<std::size_t>(i)] = page[static_cast<std::size_t>(row * data + i)];
  }
  for (std::int64_t i = 0; i < scale; ++i) {
    out.scale[static_cast<std::size_t>(i)] =
        page[static_cast<std::size_t>(rows * data + row * scale + i)];
  }
  return out;
}

void want(View row, std::int64_t size) {
  if (static_cast<std::int64_t>(row.size()) != size) {
    throw std::invalid_argument("cache row of " + std::to_string(row.size()) + " values");
  }
}

std::uint8_t number(std::byte b) { return std::to_integer<std::uint8_t>(b); }

}  // namespace

DsMlaRow encode_ds_mla(View row) {
  want(row, kHeadDim);
  const Vector rounded = bf16(row);
  DsMlaRow out;
  for (std::size_t block = 0; block < 7; ++block) {
    const Quantised q = quantise_e4m3(View(rounded).subspan(64 * block, 64), kFloor);
    for (std::size_t i = 0; i < 64; ++i) out.data[64 * block + i] = std::byte{q.codes[i]};
    out.scale[block] = std::byte{ue8m0_code(q.exponent)};
  }
  out.scale[7] = std::byte{0};
  for (std::size_t i = 0; i < 64; ++i) {
    const unsigned code = bf16_code(rounded[448 + i]);
    out.data[448 + 2 * i] = static_cast<std::byte>(code % 256);
    out.data[448 + 2 * i + 1] = static_cast<std::byte>(code / 256);
  }
  return out;
}

Vector decode_ds_mla(const DsMlaRow& row) {
  Vector out;
  for (std::size_t i = 0; i < 448; ++i) {
    out.push_back(bf16(e4m3_value(number(row.data[i])) * ue8m0_value(number(row.scale[i / 64]))));
  }
  const Vector rope = bf16_values(Bytes(row.data).subspan(448));
  out.insert(out.end(), rope.begin(), rope.end());
  return out;
}

Vector expected_ds_mla(View exact, const DsMlaRow& stored) {
  want(exact, kHeadDim);
  const double slack = kSlack * largest(exact);
  Vector out;
  for (std::size_t block = 0; block < 7; ++block) {
    const Vector codes = e4m3_values(Bytes(stored.data).subspan(64 * block, 64));
    const int exponent = number(stored.scale[block]) - 127;
    const Vector values =
        expected_e4m3(exact.subspan(64 * block, 64), codes, exponent, kFloor, slack, true);
    out.insert(out.end(), values.begin(), values.end());
  }
  const Vector rope =
      expected_bf16(exact.subspan(448), bf16_values(Bytes(stored.data).subspan(448)), slack);
  out.insert(out.end(), rope.begin(), rope.end());
  return out;
}

DsMlaRow ds_mla_row(Bytes page, std::int64_t rows, std::int64_t row) {
  return row_of<DsMlaRow>(page, rows, row);
}

Vector decode_ds_mla_row(Bytes page, std::int64_t rows, std::int64_t row) {
  return decode_ds_mla(ds_mla_row(page, rows, row));
}

IndexerRow encode_indexer(View key) {
  want(key, 128);
  const Quantised q = quantise_e4m3(bf16(key), kFloor);
  IndexerRow out;
  for (std::size_t i = 0; i < 128; ++i) out.data[i] = std::byte{q.codes[i]};
  out.scale = std::bit_cast<std::array<std::byte, 4>>(static_cast<float>(q.scale()));
  return out;
}

Vector decode_indexer(const IndexerRow& row) {
  const double scale = fp32_values(row.scale).front();
  Vector out;
  for (const double code : e4m3_values(row.data)) out.push_back(code * scale);
  return out;
}

Vector expected_indexer(View exact, const IndexerRow& stored) {
  want(exact, 128);
  const int exponent = std::ilogb(fp32_values(stored.scale).front());
  return expected_e4m3(exact, e4m3_values(stored.data), exponent, kFloor, kSlack * largest(exact),
                       true);
}

IndexerRow indexer_row(Bytes page, std::int64_t rows, std::int64_t row) {
  return row_of<IndexerRow>(page, rows, row);
}

Vector decode_indexer_row(Bytes page, std::int64_t rows, std::int64_t row) {
  return decode_indexer(indexer_row(page, rows, row));
}

IndexerRowFp4 encode_indexer_fp4(View key) {
  want(key, 128);
  const Vector rounded = bf16(key);
  IndexerRowFp4 out;
  for (std::size_t run = 0; run < 4; ++run) {
    const Quantised q = quantise_e2m1(View(rounded).subspan(32 * run, 32));
    for (std::size_t i = 0; i < 32; i += 2) {
      out.data[16 * run + i / 2] = static_cast<std::byte>(q.codes[i] + 16 * q.codes[i + 1]);
    }
    out.scale[run] = std::byte{ue8m0_code(q.exponent)};
  }
  return out;
}

Vector decode_indexer_fp4(const IndexerRowFp4& row) {
  Vector out;
  for (std::size_t i = 0; i < 128; ++i) {
    const int pair = number(row.data[i / 2]);
    const auto nibble = static_cast<std::uint8_t>(i % 2 == 0 ? pair % 16 : pair / 16);
    out.push_back(e2m1_value(nibble) * ue8m0_value(number(row.scale[i / 32])));
  }
  return out;
}

Vector expected_indexer_fp4(View exact, const IndexerRowFp4& stored) {
  want(exact, 128);
  const double slack = kSlack * largest(exact);
  Vector out;
  for (std::size_t run = 0; run < 4; ++run) {
    Vector codes;
    for (std::size_t i = 0; i < 32; ++i) {
      const int pair = number(stored.data[16 * run + i / 2]);
      codes.push_back(e2m1_value(static_cast<std::uint8_t>(i % 2 == 0 ? pair % 16 : pair / 16)));
    }
    const Vector values = expected_e2m1(exact.subspan(32 * run, 32), codes,
                                        number(stored.scale[run]) - 127, slack, true);
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

IndexerRowFp4 indexer_row_fp4(Bytes page, std::int64_t rows, std::int64_t row) {
  return row_of<IndexerRowFp4>(page, rows, row);
}

Bytes Pages::page(std::int64_t block) const {
  const std::int64_t start = block * block_stride;
  const auto size = static_cast<std::int64_t>(memory.size());
  if (block < 0 || start >= size) throw std::out_of_range("cache: no such block");
  return memory.subspan(static_cast<std::size_t>(start));
}

Place place(std::span<const std::int32_t> block_table, std::int64_t rows, std::int64_t index) {
  const std::int64_t entry = index / rows;
  if (index < 0 || entry >= static_cast<std::int64_t>(block_table.size())) {
    throw std::out_of_range("block table: no entry for index " + std::to_string(index));
  }
  const std::int64_t block = block_table[static_cast<std::size_t>(entry)];
  if (block <= 0) {
    throw std::logic_error("block table: index " + std::to_string(index) +
                           " lies in a freed block");
  }
  return {block, index % rows};
}

std::int64_t slot(std::span<const std::int32_t> block_table, std::int64_t block_tokens,
                  std::int64_t position) {
  const Place at = place(block_table, block_tokens, position);
  return at.block * block_tokens + at.row;
}

std::int64_t compressed_slot(std::span<const std::int32_t> block_table, std::int64_t block_tokens,
                             std::int64_t ratio, std::int64_t position) {
  if ((position + 1) % ratio != 0) return -1;
  return slot(block_table, block_tokens / ratio, position / ratio);
}

Matrix ds_mla_rows(const Pages& pages, std::span<const std::int32_t> block_table,
                   std::int64_t first, std::int64_t count) {
  Matrix out(count, kHeadDim);
  for (std::int64_t i = 0; i < count; ++i) {
    const Place at = place(block_table, pages.rows, first + i);
    out.set_row(i, decode_ds_mla_row(pages.page(at.block), pages.rows, at.row));
  }
  return out;
}

Matrix indexer_rows(const Pages& pages, std::span<const std::int32_t> block_table,
                    std::int64_t first, std::int64_t count) {
  Matrix out(count, 128);
  for (std::int64_t i = 0; i < count; ++i) {
    const Place at = place(block_table, pages.rows, first + i);
    out.set_row(i, decode_indexer_row(pages.page(at.block), pages.rows, at.row));
  }
  return out;
}

Vector state_row_at(const Pages& pages, std::span<const std::int32_t> block_table,
                    std::int64_t width, std::int64_t position) {
  const Place at = place(block_table, pages.rows, position);
  const auto bytes = static_cast<std::size_t>(width * 4);
  return fp32_values(pages.page(at.block).subspan(static_cast<std::size_t>(at.row) * bytes, bytes));
}

}  // namespace warmgate::reference
