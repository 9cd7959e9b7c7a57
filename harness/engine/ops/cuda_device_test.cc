// Device cuda as far as it shows without a GPU: what is said where it is missing, and its memory on
// a runtime that only notes.
#include "harness/engine/ops/cuda_device.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "harness/engine/ops/cuda_memory.h"
#include "harness/engine/ops/noted_runtime.h"

namespace warmgate::engine {
namespace {

using ::testing::StartsWith;
using Noted = testing::NotedRuntime;

constexpr std::int64_t kOneMiB = std::int64_t{1} << 20;

TEST(CudaDevice, WhereItCannotBeUsedItSaysWhatIsMissing) {
  const std::string why = why_no_cuda();
  if (why.empty()) GTEST_SKIP() << "there is a GPU";
  const auto names = device_names();
  EXPECT_EQ(std::count(names.begin(), names.end(), kCudaName), 0);
  try {
    device_named(kCudaName);
    FAIL() << "opened without " << why;
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), StartsWith("device cuda: "));
  }
  EXPECT_EQ(opened_cuda(), nullptr);
}

TEST(CudaMemory, LargePiecesHaveMemoryOfTheirOwnAndReturnIt) {
  Noted noted;
  CudaMemory memory(noted, 4096 * kOneMiB);
  const std::int64_t before = noted.room;
  const std::uint64_t a = memory.take(100 * kOneMiB + 512, Fresh::kPoison);
  const std::uint64_t b = memory.take(8 * kOneMiB, Fresh::kZero);
  EXPECT_TRUE(noted.mapped_at(a + 100 * kOneMiB));
  EXPECT_GE(b, a + 100 * kOneMiB + 512);
  memory.give_back(a, 100 * kOneMiB + 512);
  EXPECT_FALSE(noted.mapped_at(a)) << "a stale view must fault";
  EXPECT_TRUE(noted.mapped_at(b));
  EXPECT_GT(memory.take(100 * kOneMiB, Fresh::kPoison), b) << "an address was used twice";
  memory.give_back(b, 8 * kOneMiB);
  EXPECT_LT(noted.room, before);
}

TEST(CudaMemory, SmallPiecesShareMemoryAndAStaleViewReadsPoison) {
  Noted noted;
  CudaMemory memory(noted, 256 * kOneMiB);
  const std::uint64_t a = memory.take(512, Fresh::kZero), b = memory.take(1024, Fresh::kPoison);
  EXPECT_EQ(noted.mapped.size(), 1u);
  EXPECT_EQ(b, a + 512);
  noted.filled.clear();
  memory.give_back(a, 512);
  EXPECT_EQ(noted.filled[a], 512);
  EXPECT_TRUE(noted.mapped_at(a));
}

TEST(CudaMemory, StandInsHaveAddressesAndNothingBehindThem) {
  Noted noted;
  noted.room = 64 * kOneMiB;
  CudaMemory memory(noted, 300'000 * kOneMiB);
  const std::uint64_t experts = memory.take(150'000 * kOneMiB, Fresh::kStandIn);
  const std::uint64_t next = memory.take(16 * kOneMiB, Fresh::kPoison);
  EXPECT_FALSE(noted.mapped_at(experts));
  EXPECT_GE(next, experts + 150'000 * kOneMiB);
  EXPECT_NO_THROW(memory.give_back(experts, 150'000 * kOneMiB));
}

TEST(CudaMemory, AFullDeviceSaysSoAndScratchStaysAStack) {
  Noted noted;
  noted.room = 96 * kOneMiB;
  CudaMemory memory(noted, 1024 * kOneMiB);
  const std::uint64_t mark = memory.mark();
  const std::uint64_t first = memory.push(1024), second = memory.push(40 * kOneMiB);
  EXPECT_EQ(first, mark);
  EXPECT_EQ(second, first + 1024);
  EXPECT_TRUE(noted.mapped_at(second + 40 * kOneMiB - 1));
  memory.pop_to(mark);
  EXPECT_EQ(memory.push(512), mark);
  EXPECT_THROW(memory.take(64 * kOneMiB, Fresh::kPoison), kernels::cuda::DeviceFault);
  EXPECT_THROW(memory.pop_to(mark + 4096 * kOneMiB), std::logic_error);
}

TEST(CudaMemory, OwnersMayGiveBackToADeviceThatFailed) {
  Noted noted;
  {
    CudaMemory memory(noted, 256 * kOneMiB);
    const std::uint64_t small = memory.take(512, Fresh::kZero);
    noted.broken = true;
    EXPECT_NO_THROW(memory.give_back(small, 512));
    EXPECT_THROW(memory.take(512, Fresh::kZero), kernels::cuda::DeviceFault);
  }
  EXPECT_TRUE(noted.mapped.empty()) << "mapped memory was left";
}

}  // namespace
}  // namespace warmgate::engine
