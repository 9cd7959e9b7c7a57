#include "harness/engine/phases/host_usage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace warmgate::engine {
namespace {

TEST(HostUsage, APeakStays) {
  const std::int64_t before = peak_rss_bytes();
  ASSERT_GT(before, 1 << 20);
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  {
    std::vector<char> memory(kBytes);
    std::memset(memory.data(), 1, kBytes);
  }
  EXPECT_GE(peak_rss_bytes(), before);
  EXPECT_GE(peak_rss_bytes(), static_cast<std::int64_t>(kBytes));
}

}  // namespace
}  // namespace warmgate::engine
