#include "kernels/cpu/topk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/testing.h"

namespace warmgate::kernels::cpu {
namespace {

using TopkTest = RandomTest;

// Sorted by value, then by column; NaN last.
std::vector<std::int32_t> by_sorting(const float* logits, std::int64_t count, std::int64_t topk) {
  std::vector<std::int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    if (std::isnan(logits[a])) return false;
    return std::isnan(logits[b]) || logits[a] > logits[b];
  });
  order.resize(std::min(count, topk));
  std::sort(order.begin(), order.end());
  order.resize(topk, -1);
  return order;
}

TEST_F(TopkTest, EqualsSortingWithTiesAndRanges) {
  for (int round = 0; round < 60; ++round) {
    const std::int64_t topk = 1 + below(12), width = 40, tokens = 3;
    auto logits = poisoned<float>(tokens * width);
    std::vector<std::int32_t> start, end;
    for (std::int64_t t = 0; t < tokens; ++t) {
      start.push_back(static_cast<std::int32_t>(below(10)));
      end.push_back(start.back() + static_cast<std::int32_t>(below(width - start.back() + 1)));
      for (std::int32_t j = start.back(); j < end.back(); ++j) {
        const std::int64_t kind = below(12);
        logits[t * width + j] = kind == 0   ? -std::numeric_limits<float>::infinity()
                                : kind == 1 ? -0.0F
                                : kind == 2 ? 0.0F
                                : kind == 3 ? std::numeric_limits<float>::quiet_NaN()
                                            : static_cast<float>(below(5)) - 2;
      }
    }
    auto indices = poisoned<std::int32_t>(tokens * (topk + 2));
    topk_per_row(
        {tokens, topk, logits.data(), width, start.data(), end.data(), indices.data(), topk + 2});
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto expected =
          by_sorting(logits.data() + t * width + start[t], end[t] - start[t], topk);
      ASSERT_TRUE(same_bits(expected.data(), indices.data() + t * (topk + 2), topk)) << t;
      ASSERT_TRUE(is_poison(indices[t * (topk + 2) + topk]));
    }
  }
}

TEST_F(TopkTest, WithoutStartsRowsBeginAtZero) {
  const std::vector<float> logits{3, 1, 2, 9};
  const std::int32_t end = 3;  // the 9 lies beyond
  std::int32_t indices[2];
  topk_per_row({1, 2, logits.data(), 4, nullptr, &end, indices, 2});
  EXPECT_EQ(indices[0], 0);
  EXPECT_EQ(indices[1], 2);
}

TEST_F(TopkTest, ShortContextsGiveTheIdenticalList) {
  const std::int64_t topk = 33;
  for (const std::int64_t position : {0, 1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 129}) {
    const auto entries = static_cast<std::int32_t>((position + 1) / 4);
    const auto logits = floats(64);
    auto scored = poisoned<std::int32_t>(topk), filled = poisoned<std::int32_t>(topk);
    topk_per_row({1, topk, logits.data(), 64, nullptr, &entries, scored.data(), topk});
    fill_short_context({1, topk, 4, &position, filled.data(), topk});
    EXPECT_TRUE(same_bits(scored, filled)) << position;
    EXPECT_EQ(std::count(filled.begin(), filled.end(), -1), topk - entries) << position;
  }
}

TEST_F(TopkTest, GlobalSlotsAndCounts) {
  const std::int32_t pages[] = {7, 2, 5, 0};  // two requests of two pages
  const std::vector<std::int32_t> local{0, 3, -1, 1, -1, -1, 2, 0, -1};
  const std::vector<std::int32_t> token_to_req{0, 1, 0};
  const std::vector<std::uint8_t> is_valid{1, 1, 0};
  auto global = poisoned<std::int32_t>(9), lens = poisoned<std::int32_t>(3);
  global_topk_indices({3,
                       3,
                       local.data(),
                       token_to_req.data(),
                       {pages, 2, 2},
                       is_valid.data(),
                       global.data(),
                       lens.data()});
  EXPECT_EQ(global, (std::vector<std::int32_t>{14, 5, -1, 11, -1, -1, 4, 14, -1}));
  EXPECT_EQ(lens, (std::vector<std::int32_t>{2, 1, 0}));
}

}  // namespace
}  // namespace warmgate::kernels::cpu
