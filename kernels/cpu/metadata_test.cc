#include "kernels/cpu/metadata.h"

#include "kernels/cpu/testing.h"

namespace warmgate::kernels::cpu {
namespace {

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;
using MetadataTest = RandomTest;

TEST_F(MetadataTest, TokenToReqWithPadding) {
  const Ints query_start{0, 2, 2, 5};
  const Longs slots{4, 0, -1, 7, 8, -1, 9};
  auto req = poisoned<std::int32_t>(8);
  auto valid = poisoned<std::uint8_t>(8);
  token_to_req({7, 3, query_start.data(), slots.data(), req.data(), valid.data()});
  EXPECT_EQ(req, (Ints{0, 0, 2, 2, 2, 0, 0, -1}));
  EXPECT_EQ(valid, (std::vector<std::uint8_t>{1, 1, 0, 1, 1, 0, 1, 0xFF}));
}

TEST_F(MetadataTest, SlotsRawAndCompressedAtPageEdges) {
  const Ints pages{5, 3, 9, 4};  // two requests of two pages
  const Longs positions{0, 3, 4, 7, 126, 127, 128, 255};
  const Ints req{0, 0, 1, 1, 0, 0, 1, 1};
  Longs slots(10, 77);
  slot_mapping({8, 10, 1, positions.data(), req.data(), {pages.data(), 2, 128}, slots.data()});
  EXPECT_EQ(slots, (Longs{640, 643, 1156, 1159, 766, 767, 512, 639, -1, -1}));
  slot_mapping({8, 10, 4, positions.data(), req.data(), {pages.data(), 2, 32}, slots.data()});
  EXPECT_EQ(slots, (Longs{-1, 160, -1, 289, -1, 191, -1, 159, -1, -1}));
  slot_mapping({8, 10, 128, positions.data(), req.data(), {pages.data(), 2, 1}, slots.data()});
  EXPECT_EQ(slots, (Longs{-1, -1, -1, -1, -1, 5, -1, 4, -1, -1}));
}

TEST_F(MetadataTest, WindowsAtTheirEdges) {
  const std::int64_t page_rows = 64, blocks = 5;
  auto pages = shuffled(2 * blocks, 1);
  const BlockTable table{pages.data(), blocks, page_rows};
  const Longs positions{0, 1, 126, 127, 128, 191, 192, 319, 50};
  const Ints req{0, 1, 0, 1, 0, 1, 0, 1, 0};
  const std::vector<std::uint8_t> valid{1, 1, 1, 1, 1, 1, 1, 1, 0};
  auto indices = poisoned<std::int32_t>(9 * 128);
  std::fill(indices.end() - 128, indices.end(), 42);
  auto lens = poisoned<std::int32_t>(9);
  swa_indices({9, 128, 128, positions.data(), req.data(), valid.data(), table, indices.data(),
               lens.data()});
  for (std::size_t t = 0; t < 8; ++t) {
    const std::int64_t p = positions[t], n = std::min<std::int64_t>(p + 1, 128);
    ASSERT_EQ(lens[t], n);
    for (std::int64_t i = 0; i < 128; ++i) {
      ASSERT_EQ(indices[t * 128 + i], i < n ? table.slot(req[t], p - n + 1 + i) : -1);
    }
  }
  EXPECT_EQ(lens[8], 0);  // an invalid token's list is not touched
  for (std::size_t i = 8 * 128; i < 9 * 128; ++i) ASSERT_EQ(indices[i], 42);
}

TEST_F(MetadataTest, FreedBlocksBeforeTheWindowAreNotRead) {
  Ints pages{0, 0, 4, 5};  // freed blocks are the null block
  const BlockTable table{pages.data(), 4, 64};
  const std::int64_t position = 255;
  const std::int32_t req = 0;
  const std::uint8_t valid = 1;
  Ints indices(128), lens(1);
  swa_indices({1, 128, 128, &position, &req, &valid, table, indices.data(), lens.data()});
  for (const std::int32_t slot : indices) ASSERT_GE(slot, 64);
}

TEST_F(MetadataTest, ADraftBlockSharesOneList) {
  const Ints pages{1, 2, 3, 4, 5, 6, 7, 8}, query_start{0, 8, 16}, seq_lens{8, 200};
  const BlockTable table{pages.data(), 4, 64};
  const std::int64_t tokens = 17, width = 256;
  Ints req(17, 0);
  std::fill(req.begin() + 8, req.end(), 1);
  std::vector<std::uint8_t> valid(17, 1);
  valid[16] = 0;
  auto indices = poisoned<std::int32_t>(tokens * width), lens = poisoned<std::int32_t>(tokens);
  noncausal_swa_indices({tokens, 128, width, query_start.data(), seq_lens.data(), req.data(),
                         valid.data(), table, indices.data(), lens.data()});
  for (std::int64_t t = 0; t < 16; ++t) {
    const std::int64_t begin = t < 8 ? 0 : 192 - 128, end = t < 8 ? 8 : 200;
    ASSERT_EQ(lens[t], end - begin);
    for (std::int64_t i = 0; i < width; ++i) {
      ASSERT_EQ(indices[t * width + i], i < end - begin ? table.slot(req[t], begin + i) : -1)
          << t << " " << i;
    }
  }
  EXPECT_EQ(lens[16], 0);
}

TEST_F(MetadataTest, AllCompressedEntriesGlobalAndLocal) {
  const Ints pages{6, 2};
  const BlockTable table{pages.data(), 2, 2};
  const Longs positions{126, 127, 128, 255, 383, 511, 511};
  const Ints req(7, 0);
  const std::vector<std::uint8_t> valid{1, 1, 1, 1, 1, 1, 0};
  const std::int64_t width = 5;
  auto indices = poisoned<std::int32_t>(7 * width), lens = poisoned<std::int32_t>(7);
  compressed_indices({7, 128, width, positions.data(), req.data(), valid.data(), table,
                      indices.data(), lens.data()});
  EXPECT_EQ(lens, (Ints{0, 1, 1, 2, 3, 4, 0}));
  EXPECT_EQ(Ints(indices.begin() + 5 * width, indices.end()),
            (Ints{12, 13, 4, 5, -1, -1, -1, -1, -1, -1}));
  compressed_indices(
      {7, 128, width, positions.data(), nullptr, nullptr, {}, indices.data(), nullptr});
  EXPECT_EQ(Ints(indices.begin() + 4 * width, indices.begin() + 6 * width),
            (Ints{0, 1, 2, -1, -1, 0, 1, 2, 3, -1}));
  compressed_indices({1,
                      128,
                      3,
                      positions.data() + 5,
                      nullptr,
                      nullptr,
                      {},
                      indices.data(),
                      nullptr});  // narrower than the entries: clamped
  EXPECT_EQ(Ints(indices.begin(), indices.begin() + 4), (Ints{0, 1, 2, -1}));
}

TEST_F(MetadataTest, VisibleEntriesAndExpandedTables) {
  const Longs positions{0, 2, 3, 4, 7};
  Ints lens(5);
  visible_entries({5, 4, positions.data(), lens.data()});
  EXPECT_EQ(lens, (Ints{0, 0, 1, 1, 2}));
  const Ints pages{1, 2, 3, 4, 5, 6}, req{1, 0};
  Ints expanded(4);
  expand_table({2, 2, req.data(), {pages.data(), 3, 64}, expanded.data()});
  EXPECT_EQ(expanded, (Ints{4, 5, 1, 2}));
}

}  // namespace
}  // namespace warmgate::kernels::cpu
