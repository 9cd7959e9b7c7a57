// What the device's block tables hold after steps in any order. A dummy step's rows are empty and
// are sent only where the device does not have them so: what was skipped by mistake shows here and
// nowhere else, since a dummy step's results are nobody's.
#include <gtest/gtest.h>

#include "harness/engine/checks/read.h"
#include "harness/engine/testing_run.h"

namespace warmgate::engine {
namespace {

class BlockTable : public ::testing::Test {
 protected:
  BlockTable() : rank_(testing::executed({0, 4})) { rank_.start(); }
  /// `requests` requests in one step.
  void real(std::int64_t requests, std::int64_t computed, std::int64_t query) {
    Batch batch;
    for (std::int64_t r = 0; r < requests; ++r) {
      ASSERT_TRUE(rank_.model().grow_request(r, computed + query));
      batch.requests.push_back({r, computed, query});
    }
    rank_.model().step(batch, false);
  }
  void dummy(std::int64_t requests) {
    Batch batch;
    for (std::int64_t r = 0; r < requests; ++r) batch.requests.push_back({r, 0, 1});
    batch.dummy = true;
    rank_.model().step(batch, false);
  }
  /// Entries of row `row` of any group's table that are not the null block.
  std::int64_t named(std::int64_t row) {
    std::int64_t out = 0;
    for (const Tensor& table : rank_.model().block_tables())
      for (const double block : checks::row_of(table, row)) out += block != 0;
    return out;
  }
  testing::Rank rank_;
};

TEST_F(BlockTable, ADummyStepAfterARealOneSeesNoBlocks) {
  dummy(3);
  for (int row = 0; row < 3; ++row) EXPECT_EQ(named(row), 0) << row;
  real(3, 0, 20);
  for (int row = 0; row < 3; ++row) EXPECT_GT(named(row), 0) << row;
  dummy(1);
  EXPECT_EQ(named(0), 0) << "what a real step wrote was taken for empty";
  EXPECT_GT(named(1), 0) << "no row was asked for";
  dummy(2);
  EXPECT_EQ(named(1), 0) << "one empty row was taken for two";
  real(2, 20, 1);
  dummy(3);
  for (int row = 0; row < 3; ++row) EXPECT_EQ(named(row), 0) << row;
}

TEST_F(BlockTable, MoreDummyRequestsThanBeforeAreEmptyToo) {
  rank_.model().spoil(0x05);
  dummy(1);
  EXPECT_EQ(named(0), 0);
  EXPECT_GT(named(1), 0) << "no row was asked for";
  dummy(3);
  for (int row = 0; row < 3; ++row) EXPECT_EQ(named(row), 0) << row;
  rank_.model().spoil(0x05);
  dummy(2);
  for (int row = 0; row < 2; ++row) EXPECT_EQ(named(row), 0) << row << " after it was spoiled";
}

}  // namespace
}  // namespace warmgate::engine
