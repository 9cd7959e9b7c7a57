// The formulas of a layer against examples small enough to work out on paper.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/reference/attention.h"
#include "kernels/reference/compare.h"
#include "kernels/reference/compressor.h"
#include "kernels/reference/indexer.h"
#include "kernels/reference/layer.h"
#include "kernels/reference/linear.h"
#include "kernels/reference/output.h"
#include "kernels/reference/visible.h"

namespace warmgate::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void expect_near(const Vector& got, const Vector& want, double within = 1e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], within) << i;
}

TEST(ByHandLinear, ProductAndNorms) {
  const Matrix w(3, 2, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(project(Vector{10, 1}, w), (Vector{12, 34, 56}));
  EXPECT_EQ(project(Matrix(2, 2, {1, 0, 0, 1}), w).values, (Vector{1, 3, 5, 2, 4, 6}));
  EXPECT_THROW(project(Vector{1}, w), std::invalid_argument);
  // mean of squares 12.5
  expect_near(rms_norm(Vector{3, 4}, Vector{2, 10}, 0), {1.697056, 11.313708});
  expect_near(rms_norm(Vector{3, 4}, Vector{1, 1}, 12.5), {0.6, 0.8});
  expect_near(norm_heads(Vector{3, 4, 0, -2}, 2, 0), {0.848528, 1.131371, 0, -1.414214});
}

TEST(ByHandRope, PairsTurn) {
  Rope rope;
  rope.yarn = false;
  rope.dims = 2;
  // One radian a position: cos 1 = 0.540302, sin 1 = 0.841471.
  expect_near(rotate(Vector{7, 1, 0}, rope, 1), {7, 0.540302, 0.841471});
  expect_near(rotate(Vector{7, 0, 1}, rope, 1), {7, -0.841471, 0.540302});
  expect_near(unrotate(Vector{7, 1, 0}, rope, 1), {7, 0.540302, -0.841471});
  expect_near(unrotate(Vector{7, 0, 1}, rope, 1), {7, 0.841471, 0.540302});
  expect_near(rotate_heads(Vector{1, 0, 0, 1}, 2, rope, 1),
              {0.540302, 0.841471, -0.841471, 0.540302});
  rope.dims = 4;
  rope.theta = 100;  // pairs (0, 1) and (2, 3) at 1 and 0.1 radians
  expect_near(inverse_frequencies(rope), {1, 0.1});
  expect_near(rotate(Vector{1, 0, 1, 0}, rope, 10), {-0.839072, -0.544021, 0.540302, 0.841471});
  expect_near(cos_sin(rope, 10), {-0.839072, 0.540302, -0.544021, 0.841471});
}

// theta 10000: corr(32) = 20.1, corr(1) = 32.1, so the ramp runs from pair 20 to 33.
// theta 160000 = 20^4: corr(32) = 15.5, corr(1) = 24.7, from 15 to 25.
TEST(ByHandRope, YarnRamp) {
  const Vector window = inverse_frequencies(rope_of_layer(1, WindowRope::yarn));
  ASSERT_EQ(window.size(), 32U);
  EXPECT_NEAR(window[0], 1, 1e-12);
  EXPECT_NEAR(window[20], 0.00316228, 1e-8);                                // 10^-2.5, not touched
  EXPECT_NEAR(window[21], 0.00237137 * (1 - 15.0 / 16 / 13), 1e-8);         // 10^-2.625, ramp 1/13
  EXPECT_NEAR(window[31], 1.333521e-4 * (1 - 15.0 / 16 * 11 / 13), 1e-10);  // 10^-3.875, ramp 11/13
  const Vector entries = inverse_frequencies(rope_of_layer(4, WindowRope::plain));
  EXPECT_NEAR(entries[15], std::pow(20.0, -1.875), 1e-12);
  EXPECT_NEAR(entries[20], 5.590170e-4 * (0.5 + 0.5 / 16), 1e-9);  // 20^-2.5, ramp 1/2
  EXPECT_NEAR(entries[25], std::pow(20.0, -3.125) / 16, 1e-12);
  EXPECT_NEAR(entries[31], std::pow(20.0, -3.875) / 16, 1e-12);
  EXPECT_EQ(entries, inverse_frequencies(rope_of_layer(128, WindowRope::yarn)));
  const Vector plain = inverse_frequencies(rope_of_layer(1, WindowRope::plain));
  EXPECT_NEAR(plain[31], 1.333521e-4, 1e-10);
}

TEST(ByHandVisible, Windows) {
  EXPECT_EQ(visible_window(0, 128).size(), 1U);
  EXPECT_EQ(visible_window(127, 128).front(), 0);
  EXPECT_EQ(visible_window(128, 128).front(), 1);
  EXPECT_EQ(visible_window(200, 128).front(), 73);
  EXPECT_EQ(visible_window(200, 128).back(), 200);
  EXPECT_EQ(visible_window(200, 128).size(), 128U);
  // Five draft tokens behind a long prefix see 128 + 5 keys, all of them.
  const auto block = visible_draft_block(200, 205, 128);
  EXPECT_EQ(block.size(), 133U);
  EXPECT_EQ(block.front(), 72);
  EXPECT_EQ(block.back(), 204);
  EXPECT_EQ(visible_draft_block(3, 8, 128).size(), 8U);
}

TEST(ByHandVisible, Entries) {
  EXPECT_TRUE(visible_entries(2, 4).empty());
  EXPECT_EQ(visible_entries(3, 4), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(visible_entries(6, 4).size(), 1U);
  EXPECT_EQ(visible_entries(7, 4), (std::vector<std::int64_t>{0, 1}));
  EXPECT_TRUE(visible_entries(126, 128).empty());
  EXPECT_EQ(visible_entries(127, 128).size(), 1U);
  EXPECT_TRUE(visible_entries(1000, 1).empty());
}

TEST(ByHandCompressor, StateRowsAndWhichOnesAnEntryPools) {
  const CompressorShape two{2, 1};
  EXPECT_EQ(two.rows(), 2);
  EXPECT_EQ(state_row(two, Vector{1, 2}, Matrix(2, 1, {10, 20}), 3), (Vector{1, 22}));
  EXPECT_EQ(state_row(two, Vector{1, 2}, Matrix(2, 1, {10, 20}), 4), (Vector{1, 12}));
  const CompressorShape four{4, 1};
  EXPECT_EQ(four.columns(), 2);
  EXPECT_EQ(pooled_positions(four, 0), (std::vector<std::int64_t>{-4, -3, -2, -1, 0, 1, 2, 3}));
  EXPECT_EQ(pooled_positions(four, 2), (std::vector<std::int64_t>{4, 5, 6, 7, 8, 9, 10, 11}));
  const auto long_window = pooled_positions({128, 512}, 1);
  EXPECT_EQ(long_window.size(), 128U);
  EXPECT_EQ(long_window.front(), 128);
  EXPECT_TRUE(ends_entry(4, 3));
  EXPECT_FALSE(ends_entry(4, 4));
  EXPECT_FALSE(ends_entry(1, 0));
}

TEST(ByHandCompressor, Pooling) {
  // Without overlap: weights 1 and 3.
  EXPECT_NEAR(pooled({2, 1}, {Vector{1, 0}, Vector{5, std::log(3)}})[0], 4, 1e-12);
  // First entry of ratio 4: only the second columns of four rows count; equal scores, their mean.
  const auto row = [](double kv_before, double kv, double score_before, double score) {
    return std::optional<Vector>(Vector{kv_before, kv, score_before, score});
  };
  const CompressorShape four{4, 1};
  EXPECT_NEAR(
      pooled(four, {std::nullopt, std::nullopt, std::nullopt, std::nullopt, row(1000, 1, 50, 0),
                    row(1000, 2, 50, 0), row(1000, 3, 50, 0), row(1000, 6, 50, 0)})[0],
      3, 1e-12);
  // A later one: from the window before its first columns (8 with weight 1), from its own the
  // second (4 with weight 3); everything else would show as thousands.
  const double never = -1e9;
  EXPECT_NEAR(
      pooled(four, {row(8, 1000, 0, 50), row(9, 1000, never, 50), row(9, 1000, never, 50),
                    row(9, 1000, never, 50), row(1000, 9, 50, never), row(1000, 9, 50, never),
                    row(1000, 9, 50, never), row(1000, 4, 50, std::log(3))})[0],
      5, 1e-12);
}

TEST(ByHandCompressor, EntryIsNormedThenTurnedAtItsFirstToken) {
  Rope rope;
  rope.yarn = false;
  rope.dims = 2;
  const std::optional<Vector> same(Vector{3, 4, 0, 0});
  // RMS-normed (0.848528, 1.131371), entry 1 of ratio 2 turns by position 2:
  // cos 2 = -0.416147, sin 2 = 0.909297.
  expect_near(compressed_entry({2, 2}, {same, same}, Vector{1, 1}, 0, rope, 1),
              {-1.381865, 0.300748});
  expect_near(compressed_entry({2, 2}, {same, same}, Vector{2, 10}, 0, rope, 0),
              {1.697056, 11.313708});
}

TEST(ByHandIndexer, QueryWeightsAndScores) {
  Rope rope;
  rope.yarn = false;
  rope.dims = 2;
  expect_near(indexer_query(Vector{1, 2}, Matrix(4, 2, {1, 0, 0, 0, 0, 0, 0, 1}), 2, rope, 1),
              {0.540302, 0.841471, -1.682942, 1.080605});
  expect_near(indexer_weights(Vector{8, 16, 0, -8}, 4, Vector{1, 0.5, 1, 2}), {2, 2, 0, -4});
  // Heads 2 and -1: key 3 gives 6 and -3, key -3 gives -6 and 3; ReLU before the weights.
  expect_near(indexer_scores(Vector{2, -1}, Matrix(2, 1, {3, -3}), Vector{0.5, 10}), {3, 30});
  const auto heads = quantise_indexer_query(Vector{448, 1, 2, 0}, 2);
  EXPECT_EQ(heads[0].exponent, 0);
  EXPECT_EQ(heads[1].exponent, -7);  // 448 / 256 < 2 <= 448 / 128
  EXPECT_EQ(heads[1].unscaled, (Vector{256, 0}));
}

TEST(ByHandIndexer, WhatARightChoiceIs) {
  const Vector scores{5, 1, 4, 4, -1};
  const auto judge = [&](std::vector<std::int32_t> chosen, double epsilon = 0) {
    return judge_topk(scores, 2, chosen, epsilon);
  };
  EXPECT_EQ(judge({0, 2, -1}), "");
  EXPECT_EQ(judge({3, 0, -1}), "");  // a tie, any order
  EXPECT_NE(judge({0, 1, -1}), "");  // 1 < 4
  EXPECT_EQ(judge({0, 1, -1}, 3), "");
  EXPECT_NE(judge({0, 0, -1}), "");
  EXPECT_NE(judge({0, 5, -1}), "");
  EXPECT_NE(judge({0, -1, 2}), "");
  EXPECT_NE(judge({0, 2, 3}), "");
  EXPECT_NE(judge({0}), "");
  EXPECT_EQ(judge_topk(Vector{7}, 2, std::vector<std::int32_t>{0, -1}, 0), "");
  EXPECT_EQ(judge_topk(Vector{}, 2, std::vector<std::int32_t>{-1, -1}, 0), "");
}

TEST(ByHandAttention, SinkAddsToTheDenominatorAlone) {
  const Matrix keys(2, 1, {1, 3});
  const double q = 2 * std::log(2);  // scale 1/2: weights 2 and 8
  expect_near(attend(Vector{q}, keys, std::log(6), 0.5), {26.0 / 16});
  expect_near(attend(Vector{q}, keys, -kInfinity, 0.5), {2.6});
  expect_near(attend(Vector{q}, keys, kInfinity, 0.5), {0});
  expect_near(attend(Vector{q}, Matrix(0, 1), -kInfinity, 0.5), {0});
  expect_near(attend(Vector{1000}, Matrix(1, 1, {1}), 1000, 1), {0.5});
  expect_near(attend_heads(Vector{0, q}, keys, Vector{-kInfinity, std::log(6)}, 0.5), {2, 1.625});
  EXPECT_EQ(stacked(Matrix(1, 1, {9}), keys).values, (Vector{9, 1, 3}));
  EXPECT_EQ(stacked(Matrix(0, 0), keys).values, keys.values);
}

TEST(ByHandOutput, OperandGroupsAndRounding) {
  Rope rope;
  rope.yarn = false;
  rope.dims = 2;
  Vector heads(256, 0.0);
  heads[0] = 448;
  heads[2] = 1.0625;    // beside 448 rounds to 1
  heads[128] = 1.0625;  // in its own run: 1.0625 * 256 = 272 -> 272 is midway, even is 256
  const Vector operand = output_operand(heads, 2, rope, 0);
  EXPECT_EQ(operand[0], 448);
  EXPECT_EQ(operand[2], 1);
  EXPECT_EQ(operand[128], 1);
  // At position 1 a unit vector turns back: (0.540302, -0.841471), each rounded at scale 2^-9.
  Vector unit(128, 0.0);
  unit[0] = 1;
  const Vector turned = output_operand(unit, 2, rope, 1);
  EXPECT_EQ(turned[0], 0.5625);  // steps of 1/16 there
  EXPECT_EQ(turned[1], -0.8125);
  EXPECT_EQ(grouped_project(Vector{1, 1, 1, 2}, Matrix(2, 2, {1, 2, 3, 4}), 2), (Vector{3, 11}));
  EXPECT_EQ(grouped_project(Vector{1, 1, 1, 2}, Matrix(4, 2, {1, 2, 0, 1, 3, 4, 1, 0}), 2),
            (Vector{3, 1, 11, 1}));
  EXPECT_EQ(output_project(Vector{1 + 1.0 / 256, 2}, Matrix(1, 2, {1, 10})), (Vector{21}));
  EXPECT_EQ(sum_over_ranks({{1, 2}, {10, 20}}), (Vector{11, 22}));
}

TEST(ByHandLayer, GateResidualAndChoice) {
  EXPECT_EQ(silu(0), 0);
  EXPECT_NEAR(silu(std::log(3)), std::log(3) * 0.75, 1e-12);
  const Vector x{1};
  const Matrix gate_up(4, 1, {std::log(3), 0, 4, 5}), down(2, 2, {1, 100, 2, 100});
  expect_near(gated_mlp(x, gate_up, down), {3 * std::log(3), 6 * std::log(3)});
  expect_near(silu_and_mul(Vector{50, -50, -20, 20}, 10), {-10 * silu(10), 10 * silu(-50)});
  EXPECT_EQ(add(Vector{1, 2}, Vector{10, 20}), (Vector{11, 22}));
  EXPECT_EQ(argmax(Vector{1, 3, 3, 2}), 1);
  EXPECT_EQ(argmax(Vector{}), -1);
  EXPECT_EQ(argmax(Vector{1, std::nan("")}), -1);
}

TEST(ByHandCompare, RowErrors) {
  EXPECT_NEAR(row_error(Vector{3, 4.5}, Vector{3, 4}), 0.1, 1e-12);
  EXPECT_EQ(row_error(Vector{0, 0}, Vector{0, 0}), 0);
  EXPECT_EQ(row_error(Vector{1e-30}, Vector{0}), kInfinity);
  EXPECT_EQ(row_error(Vector{std::nan("")}, Vector{1}), kInfinity);
  const Worst worst = worst_row(Matrix(2, 1, {1, 3}), Matrix(2, 1, {1, 2}));
  EXPECT_EQ(worst.row, 1);
  EXPECT_EQ(worst.error, 0.5);
  const std::byte a[] = {std::byte{1}, std::byte{2}}, b[] = {std::byte{1}, std::byte{3}};
  EXPECT_EQ(mismatches(a, b), 1);
  EXPECT_EQ(mismatches(a, Bytes(b).first(1)), 2);
}

}  // namespace
}  // namespace warmgate::reference
