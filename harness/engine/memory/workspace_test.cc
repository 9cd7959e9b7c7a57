#include "harness/engine/memory/workspace.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

const LayerRef kLayer{5, "c4a", "target"};

TEST(Workspace, ViewsAreRoundedAndLaidOutFromZero) {
  testing::Rank rank(testing::small({0}));
  const auto views = rank.workspace.request(
      0, "attention", kLayer,
      {ViewSpec(DType::kU8, {1}), ViewSpec(DType::kBf16, {2, 64}), ViewSpec(DType::kU8, {257})});
  EXPECT_EQ(rank.workspace.capacity(0), 1024);  // 256 + 256 + 512
  EXPECT_EQ(views[0].address, rank.workspace.base(0));
  EXPECT_EQ(views[1].address, rank.workspace.base(0) + 256);
  EXPECT_EQ(views[2].address, rank.workspace.base(0) + 512);
  EXPECT_EQ(views[1].strides[0], 64);
  // A later request starts at 0 again.
  EXPECT_EQ(rank.workspace.request(0, "topk", kLayer, {ViewSpec(DType::kU8, {9})})[0].address,
            rank.workspace.base(0));
}

TEST(Workspace, GrowthMovesTheBaseAndGivesTheOldBufferBack) {
  testing::Rank rank(testing::small({0}));
  rank.workspace.request(0, "attention", kLayer, {ViewSpec(DType::kU8, {512})});
  const std::uint64_t before = rank.workspace.base(0);
  rank.workspace.request(0, "attention", kLayer, {ViewSpec(DType::kU8, {512})});
  EXPECT_EQ(rank.workspace.base(0), before);
  rank.workspace.request(0, "attention", kLayer, {ViewSpec(DType::kU8, {513})});
  EXPECT_NE(rank.workspace.base(0), before);
  EXPECT_EQ(rank.memory.pools().at("workspace").live, 1024);
}

TEST(Workspace, GrowthLosesTheContents) {
  auto config = testing::small({0});
  config.device = "cpu";
  testing::Rank rank(config);
  const Device& device = device_named(config.device);
  const auto ask = [&](std::int64_t bytes) {
    const Tensor view =
        rank.workspace.request(0, "attention", kLayer, {ViewSpec(DType::kU8, {bytes})})[0];
    return device.contents(view.address, view.bytes);
  };
  for (const std::int64_t size : {512, 1 << 20}) {
    const auto before = ask(size);
    for (const std::byte b : before) ASSERT_EQ(b, std::byte{0xFF});
    std::fill(before.begin(), before.end(), std::byte{7});
    EXPECT_EQ(ask(size)[0], std::byte{7});  // the same buffer as long as it is large enough
    const auto after = ask(size + 1);
    EXPECT_NE(after.data(), before.data());
    for (const std::byte b : after) ASSERT_EQ(b, std::byte{0xFF});
    EXPECT_EQ(before[0], std::byte{0xFF});
  }
}

TEST(Workspace, LockNamesTheCallerAndTheSizes) {
  testing::Rank rank(testing::small({0}));
  rank.workspace.request(0, "attention", kLayer, {ViewSpec(DType::kU8, {1 << 20})});
  rank.workspace.lock();
  rank.workspace.request(0, "attention", kLayer, {ViewSpec(DType::kU8, {1 << 20})});
  try {
    rank.workspace.request(0, "attention", kLayer, {ViewSpec(DType::kU8, {3 << 20})});
    FAIL();
  } catch (const WorkspaceLocked& locked) {
    const std::string what = locked.what();
    EXPECT_NE(what.find("workspace_test.cc"), std::string::npos) << what;
    EXPECT_NE(what.find("TestBody"), std::string::npos) << what;
    EXPECT_NE(what.find("3.00 MB"), std::string::npos) << what;
    EXPECT_NE(what.find("1.00 MB"), std::string::npos) << what;
    EXPECT_GT(locked.line, 0);
    EXPECT_EQ(locked.layer.id, 5);
  }
  EXPECT_EQ(rank.workspace.capacity(0), 1 << 20);
  rank.workspace.unlock();
  rank.workspace.request(0, "attention", kLayer, {ViewSpec(DType::kU8, {3 << 20})});
  EXPECT_EQ(rank.workspace.capacity(0), 3 << 20);
}

TEST(Workspace, LanesAreApart) {
  testing::Rank rank(testing::small({0}), 2);
  rank.workspace.request(1, "attention", kLayer, {ViewSpec(DType::kU8, {512})});
  EXPECT_EQ(rank.workspace.capacity(0), 0);
  EXPECT_EQ(rank.workspace.total_bytes(), 512);
  EXPECT_THROW(rank.workspace.request(2, "attention", kLayer, {}), std::out_of_range);
  EXPECT_THROW(Workspace(rank.memory, rank.recorder, 3), std::invalid_argument);
  EXPECT_THROW(Workspace(rank.memory, rank.recorder, 0), std::invalid_argument);
}

TEST(Workspace, ToldOncePerKindRoleSizeAndPhase) {
  testing::Rank rank(testing::small({0}));
  const auto ask = [&](const LayerRef& layer, std::int64_t bytes) {
    rank.workspace.request(0, "attention", layer, {ViewSpec(DType::kU8, {bytes})});
  };
  rank.phase("profile", [&] {
    for (int id = 0; id < 4; ++id) ask({id, "c4a", "target"}, 1024);
    ask({4, "c4a", "draft"}, 1024);
    ask({5, "c128a", "target"}, 1024);
    ask({5, "c128a", "target"}, 512);
  });
  rank.phase("serve", [&] { ask({0, "c4a", "target"}, 1024); });
  const auto events = rank.events("workspace");
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["grew"], true);
  EXPECT_EQ(events[0]["capacity"], 1024);
  EXPECT_EQ(events[1]["grew"], false);
  EXPECT_EQ(events[3]["requested"], 512);
  EXPECT_EQ(events[4]["phase"], "serve");
  EXPECT_EQ(events[0]["consumer"], "attention");
}

}  // namespace
}  // namespace warmgate::engine
