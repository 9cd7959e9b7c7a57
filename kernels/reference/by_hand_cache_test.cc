// Cache rows byte by byte, pages, and where block tables lead.
#include <gtest/gtest.h>

#include "kernels/reference/cache.h"

namespace warmgate::reference {
namespace {

int byte(std::byte b) { return std::to_integer<int>(b); }

TEST(ByHandCache, DsMlaRow) {
  Vector row(512, 0.0);
  row[0] = 448;
  row[1] = 1;
  row[63] = -1.0625;  // midway, the even code
  row[128] = 3;       // 448/256 = 1.75 < 3 <= 3.5: exponent -7, 3 * 128 = 384 = 0x7C
  row[448] = 1;
  row[511] = -123.5;
  const DsMlaRow stored = encode_ds_mla(row);
  EXPECT_EQ(byte(stored.data[0]), 0x7E);
  EXPECT_EQ(byte(stored.data[1]), 0x38);
  EXPECT_EQ(byte(stored.data[63]), 0xB8);
  EXPECT_EQ(byte(stored.data[128]), 0x7C);
  EXPECT_EQ(byte(stored.data[448]), 0x80);  // bf16 1.0, low byte first
  EXPECT_EQ(byte(stored.data[449]), 0x3F);
  EXPECT_EQ(byte(stored.data[574]), 0xF7);
  EXPECT_EQ(byte(stored.data[575]), 0xC2);
  EXPECT_EQ(byte(stored.scale[0]), 127);
  EXPECT_EQ(byte(stored.scale[1]), 105);  // all zero: the floor's 2^-22
  EXPECT_EQ(byte(stored.scale[2]), 120);
  EXPECT_EQ(byte(stored.scale[7]), 0);
  row[63] = -1;
  EXPECT_EQ(decode_ds_mla(stored), row);
  EXPECT_EQ(expected_ds_mla(row, stored), row);
}

TEST(ByHandCache, ARowIsRoundedToBf16BeforeItIsQuantised) {
  Vector row(512, 0.0);
  row[0] = 448;
  // Just above the midpoint of 1 and 1.125, but bf16 rounds it onto it, and ties go to 1.
  row[1] = 1.0625 + 1e-5;
  EXPECT_EQ(byte(encode_ds_mla(row).data[1]), 0x38);
  EXPECT_EQ(byte(encode_indexer(Vector(row.begin(), row.begin() + 128)).data[1]), 0x38);
}

TEST(ByHandCache, ValuesOfAPageComeBeforeItsScales) {
  std::vector<std::byte> page(2 * 584);
  for (std::size_t i = 0; i < page.size(); ++i) page[i] = static_cast<std::byte>(i / 8 % 251);
  const DsMlaRow row = ds_mla_row(page, 2, 1);
  EXPECT_EQ(row.data[0], page[576]);
  EXPECT_EQ(row.data[575], page[1151]);
  EXPECT_EQ(row.scale[0], page[1160]);  // two rows of data, then the first row's eight scale bytes
  EXPECT_THROW(ds_mla_row(page, 2, 2), std::out_of_range);
  EXPECT_THROW(ds_mla_row(Bytes(page).first(1167), 2, 1), std::out_of_range);
  const IndexerRow key = indexer_row(page, 2, 1);
  EXPECT_EQ(key.data[0], page[128]);
  EXPECT_EQ(key.scale[0], page[260]);
  const IndexerRowFp4 small = indexer_row_fp4(page, 2, 1);
  EXPECT_EQ(small.data[0], page[64]);
  EXPECT_EQ(small.scale[3], page[135]);
}

TEST(ByHandCache, IndexerRows) {
  Vector key(128, 0.0);
  key[0] = 896;
  key[127] = -2;
  const IndexerRow row = encode_indexer(key);
  EXPECT_EQ(byte(row.data[0]), 0x7E);
  EXPECT_EQ(byte(row.data[127]), 0xB8);
  EXPECT_EQ(byte(row.scale[3]), 0x40);  // fp32 2.0
  EXPECT_EQ(byte(row.scale[2]), 0);
  EXPECT_EQ(decode_indexer(row), key);
  EXPECT_EQ(expected_indexer(key, row), key);

  key[0] = 6;
  key[1] = 1;
  key[127] = -8;  // 6 < 8 <= 12: scale 2, -4
  const IndexerRowFp4 small = encode_indexer_fp4(key);
  EXPECT_EQ(byte(small.data[0]), 0x27);   // even channel low: 6 = 7, 1 = 2
  EXPECT_EQ(byte(small.data[63]), 0xE0);  // odd channel high: -4
  EXPECT_EQ(byte(small.scale[0]), 127);
  EXPECT_EQ(byte(small.scale[1]), 1);  // zeros: 2^-126
  EXPECT_EQ(byte(small.scale[3]), 128);
  EXPECT_EQ(decode_indexer_fp4(small), key);
  EXPECT_EQ(expected_indexer_fp4(key, small), key);
}

TEST(ByHandCache, TablesLeadToRows) {
  const std::int32_t table[] = {7, 0, 3, -1};
  EXPECT_EQ(place(table, 64, 63).block, 7);
  EXPECT_EQ(place(table, 64, 63).row, 63);
  EXPECT_EQ(place(table, 64, 128).block, 3);
  EXPECT_EQ(place(table, 64, 128).row, 0);
  EXPECT_THROW(place(table, 64, 64), std::logic_error);   // freed
  EXPECT_THROW(place(table, 64, 192), std::logic_error);  // negative
  EXPECT_THROW(place(table, 64, 256), std::out_of_range);
  EXPECT_THROW(place(table, 64, -1), std::out_of_range);
  EXPECT_EQ(slot(table, 64, 130), 3 * 64 + 2);
  // Ratio 4, blocks of 256 tokens: 64 entries a block. Position 515 ends entry 128.
  EXPECT_EQ(compressed_slot(table, 256, 4, 515), 3 * 64);
  EXPECT_EQ(compressed_slot(table, 256, 4, 514), -1);
  EXPECT_EQ(compressed_slot(table, 256, 128, 255), 7 * 2 + 1);
}

TEST(ByHandCache, RowsThroughATable) {
  std::vector<std::byte> memory(3 * 1200);
  const std::int32_t table[] = {2, 1};
  const auto put = [&](std::size_t block, std::size_t row, double value) {
    const DsMlaRow stored = encode_ds_mla(Vector(512, value));
    std::copy(stored.data.begin(), stored.data.end(),
              memory.begin() + static_cast<std::ptrdiff_t>(block * 1200 + row * 576));
    std::copy(stored.scale.begin(), stored.scale.end(),
              memory.begin() + static_cast<std::ptrdiff_t>(block * 1200 + 1152 + row * 8));
  };
  put(2, 1, 5);  // index 1
  put(1, 0, 6);  // index 2
  const Matrix rows = ds_mla_rows({memory, 1200, 2}, table, 1, 2);
  EXPECT_EQ(rows.at(0, 0), 5);
  EXPECT_EQ(rows.at(0, 511), 5);
  EXPECT_EQ(rows.at(1, 100), 6);
  // fp32 state rows of two values, two a page: index 3 is row 1 of block 1.
  const float kept[] = {1.5F, -2.0F};
  const auto* raw = reinterpret_cast<const std::byte*>(kept);
  std::copy(raw, raw + 8, memory.begin() + 1200 + 8);
  EXPECT_EQ(state_row_at({memory, 1200, 2}, table, 2, 3), (Vector{1.5, -2}));
}

}  // namespace
}  // namespace warmgate::reference
