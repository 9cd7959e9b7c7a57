#include "harness/engine/memory/workspace_plan.h"

#include <gtest/gtest.h>

#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

// MiB to two digits, cut as printed: 36.53 and the like.
double mib(std::int64_t bytes) {
  return std::round(static_cast<double>(bytes) / (1 << 20) * 100) / 100;
}

WorkspaceRow row(const scenario::Resolved& config, std::string_view kind,
                 std::string_view consumer) {
  for (const WorkspaceRow& r : workspace_plan(config)) {
    if (r.layer_kind == kind && r.consumer == consumer) return r;
  }
  ADD_FAILURE() << kind << " " << consumer << " is not in the plan";
  return {};
}

scenario::Resolved at(scenario::Resolved config, std::int64_t length, bool by_buffer = false) {
  config.limits.max_model_len = length;
  if (by_buffer) config.seams["workspace.reservation"] = "topk_buffer_width";
  return config;
}

TEST(WorkspacePlan, FlashAtThreeLengths) {
  const std::vector<std::pair<std::int64_t, double>> c4a = {
      {1048576, 1076.53}, {131072, 180.53}, {32768, 84.53}};
  for (const auto& [length, expected] : c4a) {
    const auto config = at(testing::flash(), length);
    EXPECT_EQ(mib(row(config, "swaonly", "attention").reserved), 36.53) << length;
    EXPECT_EQ(mib(row(config, "c4a", "attention").reserved), expected) << length;
  }
  const std::vector<std::pair<std::int64_t, double>> indexer = {
      {1048576, 1321}, {131072, 166}, {32768, 42.25}};
  for (const auto& [length, expected] : indexer) {
    EXPECT_EQ(mib(row(at(testing::flash(), length), "c4a", "indexer").reserved), expected);
  }
}

TEST(WorkspacePlan, Fp4Indexer) {
  auto config = testing::flash();
  config.model.indexer_cache_dtype = "fp4";
  EXPECT_EQ(mib(row(at(config, 1048576), "c4a", "indexer").reserved), 681);
  EXPECT_EQ(mib(row(at(config, 131072), "c4a", "indexer").reserved), 86);
}

TEST(WorkspacePlan, ProReservesForItsWiderTopk) {
  EXPECT_EQ(mib(row(testing::pro(), "c4a", "attention").reserved), 1092.53);
}

TEST(WorkspacePlan, C128aIsShortByItselfWhereTheBufferWidthIsUsed) {
  const auto buggy = row(at(testing::flash(), 1048576, true), "c128a", "attention");
  EXPECT_EQ(mib(buggy.reserved), 84.53);
  EXPECT_EQ(mib(buggy.needed), 324.53);
  EXPECT_TRUE(buggy.short_by_itself());
  const auto good = row(at(testing::flash(), 1048576), "c128a", "attention");
  EXPECT_EQ(good.reserved, good.needed);
  // At 64K tokens K covers the index width, so the shortfall is none.
  EXPECT_FALSE(row(at(testing::flash(), 65536, true), "c128a", "attention").short_by_itself());
  EXPECT_TRUE(row(at(testing::flash(), 65536 + 1, true), "c128a", "attention").short_by_itself());
}

TEST(WorkspacePlan, OnlyKindsThatExist) {
  EXPECT_EQ(workspace_plan(testing::small({0})).size(), 1u);
  EXPECT_EQ(workspace_plan(testing::small({128})).size(), 1u);
  EXPECT_EQ(workspace_plan(testing::small({4})).size(), 2u);
}

}  // namespace
}  // namespace warmgate::engine
