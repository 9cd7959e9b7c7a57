#include "kernels/cpu/seeded.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace warmgate::kernels::cpu {

namespace {

constexpr std::int64_t kBlock = 128;  // rows and columns that share j
constexpr int kLevels = 3;            // of j
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15U;

// splitmix64 (public domain, Vigna).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// The hash of each element of one row, eight at a time.
class Row {
 public:
  Row(std::uint64_t key, std::int64_t row)
      : base_(mix(key + kGolden * static_cast<std::uint64_t>(row + 1))) {}
  std::uint64_t eight(std::int64_t group) const {
    return mix(base_ + kGolden * static_cast<std::uint64_t>(group + 1));
  }

 private:
  std::uint64_t base_;
};

int level_of(const SeededMatrix& m, std::int64_t block_row, std::int64_t block_column) {
  if (m.even) return 0;
  const auto place =
      static_cast<std::uint64_t>(block_row) * 0x1000003U + static_cast<std::uint64_t>(block_column);
  return static_cast<int>(mix(~m.key + kGolden * (place + 1)) % kLevels);
}

int k_of(std::uint64_t byte) { return static_cast<int>((byte >> 4) + (byte & 15U)) - 15; }

std::int64_t rows_of(const SeededMatrix& m) { return m.runs[0].count + m.runs[1].count; }
std::int64_t valid_columns(const SeededMatrix& m) {
  return std::clamp<std::int64_t>(m.whole_columns - m.first_column, 0, m.columns);
}

/// Calls each(local row, row of the whole) for every row that the whole has.
template <class Each>
void each_row(const SeededMatrix& m, Each each) {
  std::int64_t local = 0;
  for (const SeededMatrix::Run& run : m.runs) {
    for (std::int64_t i = 0; i < run.valid; ++i) each(local + i, run.first + i);
    local += run.count;
  }
}

/// Writes the columns that the whole has. `table_at(local column, block column of the whole)`: the
/// values by hash byte, asked once for all columns that share both 128-column blocks.
template <class T, class TableAt>
void fill_row(const SeededMatrix& m, const Row& row, T* to, TableAt table_at) {
  const std::int64_t count = valid_columns(m), shift = m.first_column;
  for (std::int64_t begin = 0; begin < count;) {
    const std::int64_t end = std::min(
        {count, (begin / kBlock + 1) * kBlock, ((begin + shift) / kBlock + 1) * kBlock - shift});
    const T* table = table_at(begin, (begin + shift) / kBlock);
    for (std::int64_t c = begin; c < end;) {
      const std::int64_t whole = c + shift;
      std::uint64_t eight = row.eight(whole / 8) >> (whole % 8 * 8);
      if (whole % 8 == 0 && c + 8 <= end) {
        for (int i = 0; i < 8; ++i) to[c + i] = table[eight >> (8 * i) & 255U];
        c += 8;
        continue;
      }
      for (const std::int64_t stop = std::min(end, c + 8 - whole % 8); c < stop; ++c, eight >>= 8)
        to[c] = table[eight & 255U];
    }
    begin = end;
  }
}

/// j of the blocks that columns of one block row lie in, counted from the first that is needed.
class Levels {
 public:
  explicit Levels(const SeededMatrix& m) : m_(m), first_(m.first_column / kBlock) {
    levels_.resize(static_cast<std::size_t>(
        (m.first_column + std::max<std::int64_t>(m.columns, 1) - 1) / kBlock - first_ + 1));
  }
  void enter(std::int64_t row) {
    if (row / kBlock == block_row_) return;
    block_row_ = row / kBlock;
    for (std::size_t i = 0; i < levels_.size(); ++i)
      levels_[i] = level_of(m_, block_row_, first_ + static_cast<std::int64_t>(i));
  }
  int at(std::int64_t block_column) const {
    return levels_[static_cast<std::size_t>(block_column - first_)];
  }

 private:
  const SeededMatrix& m_;
  std::int64_t first_, block_row_ = -1;
  std::vector<int> levels_;
};

template <class T>
using Table = std::array<std::array<T, 256>, kLevels>;

template <class T, class Convert>
Table<T> table(int exponent, float offset, Convert convert) {
  Table<T> out{};
  for (int j = 0; j < kLevels; ++j) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const double value = offset + std::ldexp(k_of(byte), exponent + j);
      out[static_cast<std::size_t>(j)][byte] = convert(static_cast<float>(value));
    }
  }
  return out;
}

template <class T, class Convert>
void fill(const SeededMatrix& m, T* out, Convert convert) {
  std::fill_n(out, rows_of(m) * m.columns, T{});
  const Table<T> values = table<T>(m.exponent, m.offset, convert);
  Levels levels(m);
  each_row(m, [&](std::int64_t local, std::int64_t row) {
    levels.enter(row);
    fill_row(m, Row(m.key, row), out + local * m.columns, [&](std::int64_t, std::int64_t block) {
      return values[static_cast<std::size_t>(levels.at(block))].data();
    });
  });
}

Ue8m0 scale_of(int exponent) { return static_cast<Ue8m0>(exponent + 127); }

/// The least j of each block of the part, [block rows of the part, blocks of its columns].
std::vector<int> least_levels(const SeededMatrix& m) {
  const std::int64_t across = (m.columns + kBlock - 1) / kBlock;
  const std::int64_t down = (rows_of(m) + kBlock - 1) / kBlock;
  std::vector<int> out(static_cast<std::size_t>(across * down), kLevels - 1);
  Levels levels(m);
  const std::int64_t valid = valid_columns(m);
  each_row(m, [&](std::int64_t local, std::int64_t row) {
    // Blocks change where a part's row or the whole's row starts one.
    if (local % kBlock != 0 && row % kBlock != 0 && local != m.runs[0].count) return;
    levels.enter(row);
    for (std::int64_t c = 0; c < valid;) {
      const std::int64_t whole = m.first_column + c;
      int& least = out[static_cast<std::size_t>(local / kBlock * across + c / kBlock)];
      least = std::min(least, levels.at(whole / kBlock));
      c = std::min((c / kBlock + 1) * kBlock, (whole / kBlock + 1) * kBlock - m.first_column);
    }
  });
  return out;
}

}  // namespace

void fill_seeded(const SeededMatrix& m, Bf16* out) { fill(m, out, to_bf16); }
void fill_seeded(const SeededMatrix& m, float* out) {
  fill(m, out, [](float value) { return value; });
}

void fill_seeded(const SeededMatrix& m, E4m3* out, Ue8m0* scales) {
  const std::int64_t across = (m.columns + kBlock - 1) / kBlock;
  const std::vector<int> least = least_levels(m);
  for (std::size_t i = 0; i < least.size(); ++i) scales[i] = scale_of(m.exponent + least[i]);
  std::fill_n(out, rows_of(m) * m.columns, E4m3{0});
  const Table<E4m3> values = table<E4m3>(0, 0, [](float value) { return to_e4m3(value); });
  Levels levels(m);
  each_row(m, [&](std::int64_t local, std::int64_t row) {
    levels.enter(row);
    const int* stored = least.data() + local / kBlock * across;
    fill_row(m, Row(m.key, row), out + local * m.columns,
             [&](std::int64_t column, std::int64_t block) {
               const int above = levels.at(block) - stored[column / kBlock];
               return values[static_cast<std::size_t>(above)].data();
             });
  });
}

void fill_seeded_fp4(const SeededMatrix& m, Nibbles* out, Ue8m0* scales) {
  const std::int64_t elements = rows_of(m) * m.columns;
  std::fill_n(out, (elements + 1) / 2, Nibbles{0});
  std::fill_n(scales, (elements + 31) / 32, scale_of(m.exponent + 2));
  std::array<std::uint8_t, 256> codes{};
  for (unsigned byte = 0; byte < 256; ++byte)
    codes[byte] = static_cast<std::uint8_t>((byte ^ byte >> 4) & 15U);
  std::vector<std::uint8_t> row_codes(static_cast<std::size_t>(m.columns));
  each_row(m, [&](std::int64_t local, std::int64_t row) {
    fill_row(m, Row(m.key, row), row_codes.data(),
             [&](std::int64_t, std::int64_t) { return codes.data(); });
    for (std::int64_t c = 0, at = local * m.columns; c < valid_columns(m); ++c, ++at) {
      const unsigned code = row_codes[static_cast<std::size_t>(c)];
      out[at / 2] = static_cast<Nibbles>(out[at / 2] | code << (at % 2 * 4));
    }
  });
}

}  // namespace warmgate::kernels::cpu
