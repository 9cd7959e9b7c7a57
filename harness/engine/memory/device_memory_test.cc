#include "harness/engine/memory/device_memory.h"

#include <gtest/gtest.h>

#include "harness/engine/memory/activations.h"
#include "harness/engine/testing.h"

namespace warmgate::engine {
namespace {

class DeviceMemoryTest : public ::testing::Test {
 protected:
  testing::Rank rank_{testing::small({0})};
  DeviceMemory memory_{1 << 20, rank_.recorder};
};

TEST_F(DeviceMemoryTest, RoundsTo512) {
  for (const auto& [bytes, rounded] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 0}, {1, 512}, {511, 512}, {512, 512}, {513, 1024}}) {
    const Allocation a = memory_.alloc("p", bytes, "o", Lifetime::kPersistent);
    EXPECT_EQ(a.bytes, rounded) << bytes;
    EXPECT_EQ(a.address % 512, 0u);
    memory_.free(a);
  }
  EXPECT_EQ(memory_.live(), 0);
  EXPECT_THROW(memory_.alloc("p", -1, "o", Lifetime::kPersistent), std::invalid_argument);
}

TEST_F(DeviceMemoryTest, AddressesAreNotReused) {
  const Allocation a = memory_.alloc("p", 512, "o", Lifetime::kPersistent);
  memory_.free(a);
  EXPECT_NE(memory_.alloc("p", 512, "o", Lifetime::kPersistent).address, a.address);
}

TEST_F(DeviceMemoryTest, FullToTheLastByteThenNumbers) {
  memory_.alloc("p", (1 << 20) - 512, "o", Lifetime::kPersistent);
  EXPECT_EQ(memory_.free_bytes(), 512);
  const Allocation last = memory_.alloc("p", 512, "o", Lifetime::kTransient);
  memory_.free(last);
  try {
    memory_.alloc("q", 513, "victim", Lifetime::kPersistent);
    FAIL();
  } catch (const OutOfMemory& oom) {
    EXPECT_EQ(oom.needed, 1024);  // that is what would have been taken
    EXPECT_EQ(oom.free, 512);
    EXPECT_NE(std::string(oom.what()).find("victim"), std::string::npos);
  }
  EXPECT_EQ(memory_.free_bytes(), 512);
  EXPECT_THROW(memory_.alloc("q", INT64_MAX, "huge", Lifetime::kPersistent), OutOfMemory);
}

TEST_F(DeviceMemoryTest, FreeingTwiceIsAnError) {
  const Allocation a = memory_.alloc("p", 512, "o", Lifetime::kPersistent);
  memory_.free(a);
  EXPECT_THROW(memory_.free(a), std::logic_error);
  memory_.free({});  // nothing was held
}

TEST_F(DeviceMemoryTest, PeaksRestartWithThePhase) {
  const Allocation kept = memory_.alloc("w", 1024, "o", Lifetime::kPersistent);
  memory_.free(memory_.alloc("a", 4096, "t", Lifetime::kTransient));
  EXPECT_EQ(memory_.peak_bytes(), 5120);
  EXPECT_EQ(memory_.transient_peak_bytes(), 4096);
  memory_.begin_phase();
  EXPECT_EQ(memory_.peak_bytes(), 1024);
  EXPECT_EQ(memory_.transient_peak_bytes(), 0);
  EXPECT_EQ(memory_.pools().at("w").live, 1024);
  EXPECT_EQ(memory_.pools().at("a").peak, 0);
  memory_.free(kept);
}

TEST_F(DeviceMemoryTest, ScopesNest) {
  const auto site = memory_.site("a", "t", Lifetime::kTransient);
  Activations outer(memory_, site);
  outer.make(DType::kU8, {512});
  {
    Activations inner(memory_, site);
    inner.make(DType::kU8, {512});
    EXPECT_THROW(outer.make(DType::kU8, {512}), std::logic_error);
    EXPECT_EQ(memory_.live(), 1024);
  }
  outer.make(DType::kU8, {512});
  EXPECT_EQ(memory_.live(), 1024);
  const auto first = memory_.enter(), second = memory_.enter();
  EXPECT_THROW(memory_.leave(first, site, 0), std::logic_error);
  memory_.leave(second, site, 0);
  memory_.leave(first, site, 0);
}

/// Both kinds of device account alike; only one has contents.
class OnDevices : public ::testing::TestWithParam<std::string_view> {
 protected:
  testing::Rank rank_{testing::small({0})};
  const Device& device_ = device_named(GetParam());
  DeviceMemory memory_{1 << 24, rank_.recorder, device_};
};

TEST_P(OnDevices, TheSumsAreTheSame) {
  const auto site = memory_.site("a", "t", Lifetime::kTransient);
  const Allocation kept = memory_.alloc("w", 1000, "o", Lifetime::kPersistent);
  const Allocation loose = memory_.alloc("w", 700, "loose", Lifetime::kTransient);
  EXPECT_EQ(kept.bytes, 1024);
  {
    Activations act(memory_, site);
    const Tensor t = act.make(DType::kFp32, {3, 100});
    EXPECT_EQ(t.address % 512, 0u);
    memory_.free(memory_.alloc(site, 4096));
    EXPECT_EQ(memory_.live(), 1024 + 1024 + 1536);
  }
  memory_.free(loose);
  EXPECT_EQ(memory_.peak_bytes(), 1024 + 1024 + 1536 + 4096);
  EXPECT_EQ(memory_.transient_peak_bytes(), 1024 + 1536 + 4096);
  EXPECT_EQ(memory_.live(), 1024);
  EXPECT_THROW(memory_.alloc("w", 1 << 24, "o", Lifetime::kPersistent), OutOfMemory);
  memory_.free(kept);
  EXPECT_EQ(memory_.live(), 0);
}

TEST_P(OnDevices, ContentsAreThereOnlyWhereOpsExecute) {
  const Allocation poison = memory_.alloc("w", 512, "o", Lifetime::kPersistent);
  const Allocation zero = memory_.alloc("w", 512, "o", Lifetime::kPersistent, Fresh::kZero);
  Activations act(memory_, memory_.site("a", "t", Lifetime::kTransient));
  const Tensor scratch = act.make(DType::kBf16, {4});
  const auto p = device_.contents(poison.address, 512), z = device_.contents(zero.address, 512),
             s = device_.contents(scratch.address, 8);
  EXPECT_EQ(p.empty(), !device_.executes());
  for (const std::byte b : p) EXPECT_EQ(b, std::byte{0xFF});
  for (const std::byte b : z) EXPECT_EQ(b, std::byte{0});
  for (const std::byte b : s) EXPECT_EQ(b, std::byte{0xFF});
}
INSTANTIATE_TEST_SUITE_P(Devices, OnDevices, ::testing::ValuesIn(device_names()));

TEST(Devices, AccountingAndExecuting) {
  EXPECT_EQ(device_names(), (std::vector<std::string_view>{"meta", "cpu"}));
  EXPECT_FALSE(device_named("meta").executes());
  EXPECT_TRUE(device_named("cpu").executes());
  EXPECT_EQ(&accounting_device(), &device_named("meta"));
  EXPECT_THROW(device_named("cuda"), std::runtime_error);
}

TEST(DeviceMemoryEvents, FoldedPerSiteAndPhase) {
  testing::Rank rank(testing::small({0}));
  rank.phase("load", [&] {
    for (int i = 0; i < 3; ++i) rank.memory.alloc("w", 1000, "wq", Lifetime::kPersistent);
    rank.memory.alloc("w", 2000, "wq", Lifetime::kPersistent);
    for (int i = 0; i < 5; ++i) {
      Activations act(rank.memory, rank.memory.site("a", "layer", Lifetime::kTransient));
      act.make(DType::kU8, {600});
      act.make(DType::kU8, {i * 512});
    }
    const Allocation gone = rank.memory.alloc("w", 700, "gone", Lifetime::kPersistent);
    rank.memory.free(gone);
  });
  const auto allocs = rank.events("alloc");
  ASSERT_EQ(allocs.size(), 6u);
  EXPECT_EQ(allocs[0]["bytes"], 1024);
  EXPECT_EQ(allocs[1]["bytes"], 2048);
  EXPECT_EQ(allocs[2]["lifetime"], "transient");
  EXPECT_EQ(allocs[4]["owner"], "wq");
  EXPECT_EQ(allocs[4]["count"], 3);
  EXPECT_EQ(allocs[4]["final"], true);
  EXPECT_EQ(allocs[5]["owner"], "layer");
  EXPECT_EQ(allocs[5]["count"], 10);
  EXPECT_EQ(allocs[5]["bytes"], 1024 + 2048);  // the most that was alive at once
  ASSERT_EQ(rank.events("free").size(), 1u);
  EXPECT_EQ(rank.events("free")[0]["owner"], "gone");
  const auto end = rank.events("phase_end").at(0);
  EXPECT_EQ(end["persistent_bytes"], 3 * 1024 + 2048);
  EXPECT_EQ(end["transient_peak_bytes"], 3072);
  EXPECT_EQ(end["pools"]["w"]["live"], 5120);
  EXPECT_EQ(end["pools"]["w"]["peak"], 6144);
  EXPECT_EQ(end["pools"]["a"]["live"], 0);
}

}  // namespace
}  // namespace warmgate::engine
