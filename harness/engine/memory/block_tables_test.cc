#include "harness/engine/memory/block_tables.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

std::vector<CacheGroup> groups() {
  CacheGroup full, window;
  full.name = "full_mla";
  full.block_tokens = 256;
  window.name = "swa_a";
  window.block_tokens = 64;
  window.window = 128;
  return {full, window};
}

TEST(BlockPool, BlockZeroIsNeverGivenOut) {
  BlockPool pool(4);
  std::set<std::int32_t> got = {pool.take(), pool.take(), pool.take()};
  EXPECT_EQ(got, (std::set<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(pool.free(), 0);
  EXPECT_THROW(pool.take(), std::logic_error);
  pool.give_back(2);
  EXPECT_EQ(pool.take(), 2);
  pool.give_back(1);
  EXPECT_THROW(pool.give_back(0), std::out_of_range);
  EXPECT_THROW(pool.give_back(4), std::out_of_range);
  EXPECT_THROW(BlockPool(0), std::invalid_argument);
  EXPECT_THROW(BlockPool(std::int64_t{1} << 31), std::invalid_argument);
  EXPECT_EQ(BlockPool(1).free(), 0);
  EXPECT_THROW(BlockPool(5).give_back(1), std::out_of_range);
}

TEST(BlockTables, GrowsAtPageEdgesOnly) {
  BlockTables tables(groups(), 100, 2, 4096);
  for (const auto& [tokens, held] : std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0},
                                                                                       {1, 2},
                                                                                       {63, 2},
                                                                                       {64, 2},
                                                                                       {65, 3},
                                                                                       {127, 3},
                                                                                       {128, 3},
                                                                                       {129, 4},
                                                                                       {256, 5},
                                                                                       {257, 7}}) {
    ASSERT_TRUE(tables.grow(0, tokens));
    EXPECT_EQ(tables.held(0), held) << tokens;
  }
  EXPECT_TRUE(tables.grow(0, 1));  // never shrinks
  EXPECT_EQ(tables.held(0), 7);
  tables.release(0);
  EXPECT_EQ(tables.free_blocks(), 99);
}

TEST(BlockTables, AShortPoolGivesNothing) {
  BlockTables tables(groups(), 6, 2, 4096);  // five to give
  ASSERT_TRUE(tables.grow(0, 128));          // 1 + 2
  EXPECT_FALSE(tables.grow(1, 129));         // 1 + 3
  EXPECT_EQ(tables.held(1), 0);
  EXPECT_EQ(tables.free_blocks(), 2);
  EXPECT_TRUE(tables.grow(1, 64));
  EXPECT_EQ(tables.free_blocks(), 0);
  tables.release(0);
  EXPECT_TRUE(tables.grow(1, 129));
}

TEST(BlockTables, RowsAndLengthsAreBounded) {
  BlockTables tables(groups(), 100, 2, 4096);
  EXPECT_THROW(tables.grow(2, 1), std::out_of_range);
  EXPECT_THROW(tables.grow(-1, 1), std::out_of_range);
  EXPECT_THROW(tables.grow(0, 4097), std::out_of_range);
  EXPECT_THROW(tables.release(2), std::out_of_range);
}

TEST(BlockTables, WindowBlocksOutOfReachAreFreed) {
  BlockTables tables(groups(), 100, 1, 4096);
  ASSERT_TRUE(tables.grow(0, 512));
  const std::int64_t before = tables.free_blocks();
  // The token at `computed` reaches back to computed - 127.
  tables.free_window(0, 127 + 63);
  EXPECT_EQ(tables.free_blocks(), before);
  tables.free_window(0, 127 + 64);
  EXPECT_EQ(tables.free_blocks(), before + 1);
  EXPECT_EQ(tables.row(1, 0)[0], 0);
  EXPECT_GT(tables.row(1, 0)[1], 0);
  tables.free_window(0, 127 + 64);  // once only
  EXPECT_EQ(tables.free_blocks(), before + 1);
  tables.free_window(0, 4096);
  EXPECT_EQ(tables.free_blocks(), before + 8);
  EXPECT_EQ(tables.row(0, 0).size(), 2u);  // what is kept whole stays
  tables.release(0);
  EXPECT_EQ(tables.free_blocks(), 99);
}

TEST(Slots, AcrossPagesAndNullBlocks) {
  const std::vector<std::int32_t> row = {7, 0, 9};
  std::vector<std::int64_t> slots(5);
  fill_slots(row, 4, 2, slots);  // positions 2..6
  EXPECT_EQ(slots, (std::vector<std::int64_t>{30, 31, -1, -1, -1}));
  slots.assign(6, 99);
  fill_slots(row, 4, 7, slots);  // 7..12, the last beyond the table
  EXPECT_EQ(slots, (std::vector<std::int64_t>{-1, 36, 37, 38, 39, -1}));
  std::vector<std::int64_t> none;
  fill_slots(row, 4, 0, none);
}

TEST(Slots, CompressedOnlyWhereAWindowEnds) {
  const std::vector<std::int32_t> row = {5, 6};
  std::vector<std::int64_t> slots(6, 77);
  fill_compressed_slots(row, 256, 4, 2, slots);  // positions 2..7: 3 ends entry 0, 7 entry 1
  EXPECT_EQ(slots, (std::vector<std::int64_t>{-1, 320, -1, -1, -1, 321}));
  slots.assign(1, 77);
  fill_compressed_slots(row, 256, 4, 255, slots);  // entry 63, the last row of the first block
  EXPECT_EQ(slots[0], 5 * 64 + 63);
  fill_compressed_slots(row, 256, 4, 259, slots);  // entry 64, the first of the second
  EXPECT_EQ(slots[0], 6 * 64);
  fill_compressed_slots(row, 256, 128, 127, slots);
  EXPECT_EQ(slots[0], 5 * 2);
  fill_compressed_slots(row, 256, 128, 255, slots);
  EXPECT_EQ(slots[0], 5 * 2 + 1);
  fill_compressed_slots(row, 256, 128, 128, slots);
  EXPECT_EQ(slots[0], -1);
  fill_compressed_slots(row, 256, 128, 767, slots);  // beyond the table
  EXPECT_EQ(slots[0], -1);
}

TEST(Slots, NegativeEntriesAreClampedInPlace) {
  std::vector<std::int32_t> row = {-3, 4, -1};
  clamp_negative(row);
  EXPECT_EQ(row, (std::vector<std::int32_t>{0, 4, 0}));
}

}  // namespace
}  // namespace warmgate::engine
