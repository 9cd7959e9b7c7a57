#include "harness/target/gpu_memory.h"

#include <gmock/gmock.h>

#include <map>

namespace warmgate::target {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

/// GPUs whose memory in use is a list, one entry a question; the last stays.
struct Gpus {
  std::map<std::string, std::vector<std::uint64_t>> tells;
  std::map<std::string, std::size_t> asked;
  GpuUsed used() {
    return [this](const std::string& uuid) -> std::optional<std::uint64_t> {
      const auto it = tells.find(uuid);
      if (it == tells.end()) return std::nullopt;
      return it->second[std::min(asked[uuid]++, it->second.size() - 1)];
    };
  }
};

TEST(GpuMemoryCheck, WhatComesBackLateIsWaitedFor) {
  Gpus gpus{{{"GPU-a", {100 * kMiB, 9000 * kMiB, 9000 * kMiB, 110 * kMiB}}}, {}};
  GpuMemoryCheck check({"GPU-a"}, gpus.used());
  check.begin();
  const auto events = check.settle(30);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].ev, "gpu_memory");
  EXPECT_EQ(events[0].num("before"), static_cast<std::int64_t>(100 * kMiB));
  EXPECT_EQ(events[0].num("after"), static_cast<std::int64_t>(110 * kMiB));
  EXPECT_EQ(gpus.asked["GPU-a"], 4u);
}

TEST(GpuMemoryCheck, WhatStaysIsALeftover) {
  Gpus gpus{{{"GPU-a", {100 * kMiB, 400 * kMiB}}, {"GPU-b", {50 * kMiB}}}, {}};
  GpuMemoryCheck check({"GPU-a", "GPU-b"}, gpus.used());
  check.begin();
  const auto events = check.settle(0.02);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].ev, "leftover");
  EXPECT_EQ(events[0].str("what"), "gpu_memory");
  EXPECT_EQ(events[0].str("path"), "GPU-a");
  EXPECT_EQ(events[0].num("bytes"), static_cast<std::int64_t>(300 * kMiB));
  EXPECT_EQ(events[1].ev, "gpu_memory");
}

TEST(GpuMemoryCheck, AGpuThatDoesNotTellIsNotJudged) {
  Gpus gpus{{{"GPU-a", {100 * kMiB, 90 * kMiB}}}, {}};
  GpuMemoryCheck check({"GPU-x", "GPU-a"}, gpus.used());
  check.begin();
  gpus.tells.clear();
  EXPECT_TRUE(check.settle(0).empty());
  GpuMemoryCheck none({"GPU-no-such"});  // NVML has no such GPU, or is not there
  none.begin();
  EXPECT_TRUE(none.settle(0).empty());
}

}  // namespace
}  // namespace warmgate::target
