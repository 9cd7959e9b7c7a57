#include "kernels/cpu/decoder.h"

#include <limits>

#include "kernels/cpu/testing.h"

namespace warmgate::kernels::cpu {
namespace {

using DecoderTest = RandomTest;

TEST_F(DecoderTest, EmbeddingOfAShard) {
  const std::int64_t width = 5;
  const auto table = bf16s(4 * width);
  const std::vector<std::int64_t> ids{12, 15, 11, 16, -1};
  auto out = poisoned<Bf16>(5 * width);
  embed({5, width, 4, 12, ids.data(), table.data(), out.data()});
  EXPECT_TRUE(same_bits(out.data(), table.data(), width));
  EXPECT_TRUE(same_bits(out.data() + width, table.data() + 3 * width, width));
  for (std::int64_t i = 2 * width; i < 5 * width; ++i) EXPECT_EQ(out[i], 0);  // other shards'
}

TEST_F(DecoderTest, CopiesStayEqual) {
  const Copies shape{3, 4, 6};
  const auto x = bf16s(18), y = bf16s(18);
  auto residual = poisoned<Bf16>(3 * 4 * 6);
  spread_copies(shape, x.data(), residual.data());
  add_to_copies(shape, y.data(), residual.data());
  for (std::int64_t i = 0; i < 72; ++i) {
    const std::int64_t from = i / 24 * 6 + i % 6;
    ASSERT_EQ(residual[i], to_bf16(to_float(x[from]) + to_float(y[from])));
  }
  std::vector<Bf16> first(18), mean(18);
  first_copy(shape, residual.data(), first.data());
  mean_of_copies(shape, residual.data(), mean.data());
  EXPECT_TRUE(same_bits(first, mean));
  residual[6] = to_bf16(3);  // one copy differs: only the mean sees it
  residual[0] = residual[12] = residual[18] = to_bf16(1);
  first_copy(shape, residual.data(), first.data());
  mean_of_copies(shape, residual.data(), mean.data());
  EXPECT_EQ(to_float(first[0]), 1.0F);
  EXPECT_EQ(to_float(mean[0]), 1.5F);
}

TEST_F(DecoderTest, SelectsRows) {
  const auto x = bf16s(12);
  const std::vector<std::int64_t> rows{3, 0, 3};
  std::vector<Bf16> out(9);
  select_rows(3, 3, rows.data(), x.data(), out.data());
  EXPECT_TRUE(same_bits(out.data(), x.data() + 9, 3));
  EXPECT_TRUE(same_bits(out.data() + 3, x.data(), 3));
  EXPECT_TRUE(same_bits(out.data() + 6, x.data() + 9, 3));
}

TEST_F(DecoderTest, ArgmaxTiesNanAndShards) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = 1.0F / 0.0F;
  const std::vector<float> logits{1,   5, 5,   2,  9,  // the 9 lies in the stride's gap
                                  nan, 1, nan, 3,  9,  nan,       nan, nan,
                                  nan, 9, -7,  -8, -7, -infinity, 9};
  std::vector<std::int64_t> ids(4);
  std::vector<float> best(4);
  argmax({4, 4, 5, 100, logits.data(), ids.data(), best.data()});
  EXPECT_EQ(ids, (std::vector<std::int64_t>{101, 103, 100, 100}));
  EXPECT_EQ(best, (std::vector<float>{5, 3, -infinity, -7}));
}

TEST_F(DecoderTest, SumsInRankOrder) {
  const float big = 0x1p24F;
  std::vector<Bf16> a{to_bf16(big)}, b{to_bf16(1)}, c{to_bf16(-big)};
  const Bf16* terms[] = {a.data(), b.data(), c.data()};
  Bf16 out = 0;
  sum_bf16(1, 3, terms, &out);
  EXPECT_EQ(to_float(out), 0.0F);  // (2^24 + 1) - 2^24 in fp32
  const Bf16* other[] = {a.data(), c.data(), b.data()};
  sum_bf16(1, 3, other, b.data());  // into one of the terms
  EXPECT_EQ(to_float(b[0]), 1.0F);
}

}  // namespace
}  // namespace warmgate::kernels::cpu
