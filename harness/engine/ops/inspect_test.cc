#include "harness/engine/ops/inspect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "harness/engine/testing_run.h"

namespace warmgate::engine {
namespace {

const Device& executing() { return device_named(testing::executing_device()); }

template <class T>
Tensor over(std::vector<T>& values, DType dtype, Shape shape) {
  return make_tensor(dtype, shape, reinterpret_cast<std::uintptr_t>(values.data()));
}

std::uint64_t digest(std::vector<std::uint8_t> bytes) {
  std::uint64_t out = 0;
  const auto count = static_cast<std::int64_t>(bytes.size());
  ops::run(ops::Digest{over(bytes, DType::kU8, {count}), &out}, executing());
  return out;
}

TEST(Digest, EveryByteCounts) {
  const std::vector<std::uint8_t> zeros(37, 0);
  for (std::size_t i = 0; i < zeros.size(); ++i) {
    auto changed = zeros;
    changed[i] = 1;
    EXPECT_NE(digest(changed), digest(zeros)) << i;
  }
  EXPECT_EQ(digest(zeros), digest(zeros));
  EXPECT_NE(digest(std::vector<std::uint8_t>(36, 0)), digest(zeros));
}

TEST(CountNan, FloatsHaveMoreThanOne) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  std::vector<float> page = {0, nan, -nan, inf, -inf, 1};
  std::int64_t count = 3;  // it adds
  ops::run(ops::CountNan{over(page, DType::kFp32, {2, 3}), ops::PageContent::kFp32, &count},
           executing());
  EXPECT_EQ(count, 5);
}

TEST(CountNan, KeysAreReadByTheirLayout) {
  constexpr int kRows = 3;
  std::vector<std::uint8_t> page(kRows * 584, 0);
  const auto nans = [&] {
    std::int64_t count = 0;
    ops::run(ops::CountNan{over(page, DType::kU8, {kRows, 584}), ops::PageContent::kKeys, &count},
             executing());
    return count;
  };
  EXPECT_EQ(nans(), 0);
  page[576 + 447] = 0xff;  // e4m3, second row
  page[576 + 446] = 0x7f;
  page[0] = 0x7e;  // 448: the largest number
  EXPECT_EQ(nans(), 2);
  const std::uint16_t quiet = 0x7fc0, infinite = 0x7f80;
  std::memcpy(&page[2 * 576 + 448], &quiet, 2);
  std::memcpy(&page[2 * 576 + 450], &infinite, 2);
  EXPECT_EQ(nans(), 3);
  std::memset(&page[kRows * 576], 0xff, kRows * 8);  // scales: exponents, of which all are legal
  EXPECT_EQ(nans(), 3);
}

TEST(FillBytes, AllAndNothingElse) {
  std::vector<std::uint8_t> bytes(40, 1);
  Tensor middle = over(bytes, DType::kI32, {8});
  middle.address += 4;
  ops::run(ops::FillBytes{middle, 0xab}, executing());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    EXPECT_EQ(bytes[i], i >= 4 && i < 36 ? 0xab : 1) << i;
  ops::run(ops::FillBytes{{}, 0xab}, executing());  // an absent tensor has no bytes
}

TEST(Inspect, RefusesToLookNowhere) {
  EXPECT_TRUE(ops::can_run(ops::Digest{}));
  EXPECT_TRUE(ops::can_run(ops::CountNan{}));
}

}  // namespace
}  // namespace warmgate::engine
