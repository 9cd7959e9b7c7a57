#include "kernels/jit/checked.h"

#include <limits>

namespace warmgate::jit {
namespace {

constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();

/// "kind: operands" of what `work` throws; "" if it does not. Checks the line if one is given.
template <typename Work>
std::string fault_of(const Work& work, unsigned line = 0) {
  steps_left = 1000;
  try {
    work();
    return "";
  } catch (const KernelFault& fault) {
    if (line != 0) {
      EXPECT_EQ(fault.location.line(), line);
    }
    EXPECT_NE(std::string(fault.location.file_name()).find("checked_test.cc"), std::string::npos);
    return fault.kind + ": " + fault.what();
  }
}

TEST(Checked, ComputesLikeInt) {
  for (const int a : {0, 1, 7, -7, 128, kMax, kMin}) {
    for (const int b : {1, 3, 16, -3}) {
      if (a == kMin && b == -1) continue;
      EXPECT_EQ((Int(a) / b).raw(), a / b);
      EXPECT_EQ((Int(a) % b).raw(), a % b);
      EXPECT_EQ(Int(a) < b, a < b);
      EXPECT_EQ(Int(a) == b, a == b);
    }
  }
  EXPECT_EQ((Int(5) + 6 - 4 * Int(2)).raw(), 3);
  EXPECT_EQ((Int(5) << 3).raw(), 40);
  EXPECT_EQ((Int(40) >> 3).raw(), 5);
  EXPECT_EQ(((Int(13) & 6) | 1).raw(), 5);
  EXPECT_EQ(Long(Int(kMax)).raw() + 1, std::int64_t{kMax} + 1);
  EXPECT_EQ((Int(kMax - 1) + 1).raw(), kMax);
}

TEST(Checked, FaultsWhereIntWouldBeUndefined) {
  const Int zero = 0;
  EXPECT_EQ(fault_of([&] { (void)(Int(37) / zero); }, __LINE__), "division_by_zero: 37 / 0");
  EXPECT_EQ(fault_of([&] { (void)(Int(37) % zero); }, __LINE__), "division_by_zero: 37 % 0");
  EXPECT_EQ(fault_of([] { (void)(Int(kMin) / -1); }, __LINE__), "overflow: -2147483648 / -1");
  EXPECT_EQ(fault_of([] { (void)(Int(kMax) + 1); }), "overflow: 2147483647 + 1");
  EXPECT_EQ(fault_of([] { (void)(Int(kMin) - 1); }), "overflow: -2147483648 - 1");
  EXPECT_EQ(fault_of([] { (void)(Int(65536) * 32768); }), "overflow: 65536 * 32768");
  EXPECT_EQ(fault_of([] { (void)(Int(1) << 32); }), "bad_shift: 1 << 32");
  EXPECT_EQ(fault_of([] { (void)(Int(1) >> -1); }), "bad_shift: 1 >> -1");
  EXPECT_EQ(fault_of([] { (void)(Int(1) << 31); }), "overflow: 1 << 31");
  EXPECT_EQ(fault_of([] { (void)(Int(-1) << 1); }), "overflow: -1 << 1");
  EXPECT_EQ(fault_of([] { (void)Int(Long(std::int64_t{1} << 40)); }),
            "overflow: 1099511627776 narrowed to 0");
  EXPECT_EQ(fault_of([] { (void)(Long(1) << 62); }), "");
  EXPECT_EQ(fault_of([] { (void)(Long(std::int64_t{1} << 62) * Long(2)); }),
            "overflow: 4611686018427387904 * 2");
}

TEST(Checked, PointersKnowTheirEnds) {
  const std::int32_t in[4] = {1, 2, 3, 4};
  std::int32_t out[2] = {0, 0};
  const Pointer<const std::int32_t> from(in, 4);
  const Pointer<std::int32_t> to(out, 2);
  to[1] = from[3] + from[0];
  EXPECT_EQ(out[1], 5);
  EXPECT_EQ((from + 2)[1].raw(), 4);
  EXPECT_EQ(fault_of([&] { (void)from[4]; }, __LINE__), "out_of_bounds: 4 index into 4");
  EXPECT_EQ(fault_of([&] { (void)from[Int(-1)]; }), "out_of_bounds: -1 index into 4");
  EXPECT_EQ(fault_of([&] { to[Long(2)] = 1; }), "out_of_bounds: 2 index into 2");
  EXPECT_EQ(fault_of([&] { (void)(from + 5); }), "out_of_bounds: 5 offset into 4");
  EXPECT_EQ(fault_of([&] { (void)(from + 2)[2]; }), "out_of_bounds: 2 index into 2");
  EXPECT_EQ(fault_of([&] { (from + 4).require_aligned(std::source_location::current()); }), "");
  EXPECT_EQ(fault_of([&] { (from + 1).require_aligned(std::source_location::current()); }),
            "misaligned: 1 elements past an alignment of 4");
}

TEST(Checked, LoopsThatNeverEndRunOutOfSteps) {
  EXPECT_EQ(fault_of([] {
              const Int step = 0;
              for (Int i = 0; i < 10; i += step) {
              }
            }),
            "endless: 0 += 0");
}

}  // namespace
}  // namespace warmgate::jit
