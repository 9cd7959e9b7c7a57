#include "harness/target/server/gpu.h"

#include <gmock/gmock.h>

#include <fstream>

#include "harness/target/test_support.h"

namespace warmgate::target {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<GpuDevice> kTwo = {{"GPU-aa11", {}}, {"GPU-bb22", {}}};
const std::vector<GpuDevice> kSplit = {{"GPU-aa11", {"MIG-1", "MIG-2"}}, {"GPU-bb22", {}}};

TEST(Gpus, VisibleOnesAsCudaCountsThem) {
  EXPECT_THAT(visible_gpus(kTwo, std::nullopt), ElementsAre("GPU-aa11", "GPU-bb22"));
  EXPECT_THAT(visible_gpus(kTwo, "1"), ElementsAre("GPU-bb22"));
  EXPECT_THAT(visible_gpus(kTwo, "1,0"), ElementsAre("GPU-bb22", "GPU-aa11"));
  EXPECT_THAT(visible_gpus(kTwo, " 0 , GPU-bb"), ElementsAre("GPU-aa11", "GPU-bb22"));
  EXPECT_THAT(visible_gpus(kTwo, "0,0"), ElementsAre("GPU-aa11"));
  EXPECT_THAT(visible_gpus(kTwo, ""), IsEmpty());
  EXPECT_THAT(visible_gpus(kTwo, "-1"), IsEmpty());
  EXPECT_THAT(visible_gpus(kTwo, "NoDevFiles"), IsEmpty());
  EXPECT_THAT(visible_gpus(kTwo, "0,7,1"), ElementsAre("GPU-aa11"));  // ends at the first wrong one
  EXPECT_THAT(visible_gpus(kTwo, "GPU-"), IsEmpty());
  EXPECT_THAT(visible_gpus({}, std::nullopt), IsEmpty());
}

TEST(Gpus, PartsOfASplitOne) {
  EXPECT_THAT(visible_gpus(kSplit, std::nullopt), ElementsAre("MIG-1", "MIG-2", "GPU-bb22"));
  EXPECT_THAT(visible_gpus(kSplit, "MIG-2"), ElementsAre("MIG-2"));
  EXPECT_THAT(visible_gpus(kSplit, "0"), ElementsAre("MIG-1", "MIG-2"));
}

TEST(Gpus, NobodyWaitsForWhatIsNotThere) {
  EXPECT_TRUE(wait_until_steady({}, 30));
  EXPECT_TRUE(wait_until_steady({"GPU-no-such"}, 30));
  EXPECT_EQ(gpu_used_bytes("GPU-no-such"), std::nullopt);
}

TEST(GpuLocks, HeldByOneAndFreeAfterwards) {
  const target::testing::TempDir dir;
  const CancelToken cancel;
  {
    const GpuLock first({"b", "a"}, dir.path(), cancel, milliseconds(0));
    EXPECT_TRUE(first.held());
    std::string waited;
    const GpuLock second({"c", "b"}, dir.path(), cancel, milliseconds(0),
                         [&](const std::string& uuid) { waited = uuid; });
    EXPECT_FALSE(second.held());
    EXPECT_EQ(second.missing(), "b");
    // What it had already is free again.
    EXPECT_TRUE(GpuLock({"c"}, dir.path(), cancel, milliseconds(0)).held());
  }
  EXPECT_TRUE(GpuLock({"a", "b"}, dir.path(), cancel, milliseconds(0)).held());
  EXPECT_TRUE(GpuLock({}, dir.path(), cancel, milliseconds(0)).held());
}

TEST(GpuLocks, ACancelEndsTheWait) {
  const target::testing::TempDir dir;
  CancelToken cancel;
  const GpuLock first({"a"}, dir.path(), cancel, milliseconds(0));
  const GpuLock second({"a"}, dir.path(), cancel, std::chrono::hours(1),
                       [&](const std::string&) { cancel.cancel(); });
  EXPECT_FALSE(second.held());
}

TEST(GpuLocks, WhatIsNoLockFileIsRefused) {
  const target::testing::TempDir dir;
  const CancelToken cancel;
  std::filesystem::create_directory(dir.path() / "warmgate-gpu-d.lock");
  EXPECT_THROW(GpuLock({"d"}, dir.path(), cancel, milliseconds(0)), std::system_error);
  std::ofstream(dir.path() / "elsewhere") << "x";
  std::filesystem::create_symlink(dir.path() / "elsewhere", dir.path() / "warmgate-gpu-l.lock");
  EXPECT_THROW(GpuLock({"l"}, dir.path(), cancel, milliseconds(0)), std::system_error);
}

}  // namespace
}  // namespace warmgate::target
