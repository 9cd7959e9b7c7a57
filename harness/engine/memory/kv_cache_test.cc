#include "harness/engine/memory/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

class KvCacheTest : public ::testing::Test {
 protected:
  KvCacheTest()
      : rank_(testing::small({0, 4, 128, 0})),
        dims_(make_dims(rank_.config)),
        modules_(cache_modules(dims_, {Kind::kSwaOnly, Kind::kC4a, Kind::kC128a, Kind::kSwaOnly})),
        groups_(group_caches(modules_)),
        plan_(plan_kv_cache(dims_, modules_, groups_, 1'000'000'000)),
        cache_(rank_.memory, dims_, modules_, groups_, plan_) {}
  testing::Rank rank_;
  Dims dims_;
  std::vector<CacheModule> modules_;
  std::vector<CacheGroup> groups_;
  KvPlan plan_;
  KvCache cache_;
};

TEST_F(KvCacheTest, ViewsShareTheBlockStrideAndStayInside) {
  const auto& pools = rank_.memory.pools();
  EXPECT_EQ(pools.at("kv_cache").live, round_up(plan_.num_blocks * plan_.block_stride, 512));
  const std::uint64_t slab = cache_.of(0).view.address;  // the first window page is at offset 0
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    const Tensor& view = cache_.of(i).view;
    ASSERT_TRUE(cache_.of(i).bound()) << modules_[i].name;
    EXPECT_EQ(view.strides[0] * bits_of(view.dtype) / 8, plan_.block_stride);
    EXPECT_EQ(view.dim(1) * view.dim(2) * bits_of(view.dtype) / 8, modules_[i].spec.page_bytes);
    EXPECT_LE(view.address + static_cast<std::uint64_t>(view.bytes),
              slab + static_cast<std::uint64_t>(plan_.num_blocks * plan_.block_stride));
  }
}

TEST_F(KvCacheTest, ModulesOfAWindowOnlyLayer) {
  const auto own = std::count_if(modules_.begin(), modules_.end(),
                                 [](const CacheModule& m) { return m.layer == 0; });
  EXPECT_EQ(own, 1);
  EXPECT_EQ(modules_[0].name, "layers.0.attn.swa_cache");
}

TEST_F(KvCacheTest, WhatAnEarlierStepLeftInTheSlotsIsPadding) {
  const auto write = [&](std::int64_t tokens, std::int64_t value) {
    cache_.write_slots(0, tokens, [&](std::span<std::int64_t> slots) {
      EXPECT_EQ(static_cast<std::int64_t>(slots.size()), tokens);
      std::fill(slots.begin(), slots.end(), value);
    });
  };
  write(512, 7);  // B
  EXPECT_EQ(cache_.host_slots(0).back(), 7);
  write(3, 9);
  EXPECT_EQ(cache_.host_slots(0)[2], 9);
  EXPECT_EQ(cache_.host_slots(0)[3], -1);
  EXPECT_EQ(cache_.host_slots(0)[511], -1);
  write(0, 1);
  EXPECT_EQ(cache_.host_slots(0)[0], -1);
}

TEST_F(KvCacheTest, TablesAndSlotMappingsHaveTheirDeviceShapes) {
  for (std::size_t g = 0; g < cache_.groups(); ++g) {
    EXPECT_EQ(cache_.table(g).dim(0), 16);
    EXPECT_EQ(cache_.table(g).dim(1), ceil_div(8192, groups_[g].block_tokens));
    EXPECT_EQ(cache_.table(g).dtype, DType::kI32);
    EXPECT_EQ(cache_.slots(g).dim(0), 512);
    EXPECT_EQ(cache_.slots(g).dtype, DType::kI64);
  }
}

}  // namespace
}  // namespace warmgate::engine
