// Every measurement is a test of its own name; the table of all that ran is printed at the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"

namespace warmgate::numerics {
namespace {

Table& printed() {
  static Table table;
  return table;
}

class PrintsTable : public ::testing::Environment {
 public:
  void SetUp() override {
    std::printf("inputs of seed %llu (WARMGATE_SEED sets it)\n",
                static_cast<unsigned long long>(fresh_seed()));
  }
  void TearDown() override { printed().print(stdout); }
};

const auto* const environment = ::testing::AddGlobalTestEnvironment(new PrintsTable);

class Numerics : public ::testing::TestWithParam<Case> {};

TEST_P(Numerics, WithinLimits) {
  Random random(fresh_seed(), GetParam().name);
  Table table;
  GetParam().measure(random, table);
  EXPECT_FALSE(table.rows().empty());
  for (const Row& row : table.rows()) {
    EXPECT_TRUE(row.right()) << row.step << ", " << row.inputs << ": error " << row.error
                             << ", limit " << row.limit << ", " << row.mismatches << " differ, "
                             << row.poisoned << " poisoned, seed " << fresh_seed();
    printed().add(row);
  }
}

INSTANTIATE_TEST_SUITE_P(Step, Numerics, ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Table, WhatIsRight) {
  EXPECT_TRUE((Row{"s", "i", 0.001, 0.01, 0, 0}).right());
  EXPECT_FALSE((Row{"s", "i", 0.02, 0.01, 0, 0}).right());
  EXPECT_FALSE((Row{"s", "i", std::nan(""), 0.01, 0, 0}).right());
  EXPECT_FALSE((Row{"s", "i", 0, 0, 1, 0}).right());
  EXPECT_FALSE((Row{"s", "i", 0, 0.01, 0, 1}).right());
}

TEST(Inputs, OutputMemoryShowsWhatWasWritten) {
  Output<float> out(10);
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_EQ(out.unwritten(0, 10), 10);
  out.data()[3] = 1;
  EXPECT_EQ(out.unwritten(0, 10), 9);
  EXPECT_EQ(out.written(0, 10), 1);
  EXPECT_EQ(out.overrun(), 0);
  out.data()[10] = 1;
  out.data()[-1] = 1;
  EXPECT_EQ(out.overrun(), 2);
  EXPECT_EQ(differing(std::vector<int>{1, 2}, std::vector<int>{1, 3}), 1);
  EXPECT_EQ(differing(std::vector<int>{1, 2}, std::vector<int>{1}), 2);
}

// A device of its own name: waited for after each call, and bits of sums are not compared.
class OtherDevice : public kernels::CpuKernels {
 public:
  const char* device() const override { return "other"; }
  void synchronize() override { ++waits; }
  int waits = 0;
};

TEST(Device, WaitsAndComparesAsTheDeviceDoes) {
  const std::vector<Bf16> ones{0x3F80, 0x3F80}, nearly{0x3F80, 0x3F81}, far{0x3F80, 0x4000};
  const auto row = [&](const std::vector<Bf16>& got) {
    Table table;
    same_sums(table, "s", "i", got, ones, 2);
    return table.rows().front();
  };
  EXPECT_TRUE(row(ones).right());
  EXPECT_FALSE(row(nearly).right());
  static OtherDevice other;
  measure_on(other);
  const std::vector<std::int64_t> positions{3};
  std::int32_t seen = 0;
  device()->visible_entries({1, 4, positions.data(), &seen});
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(other.waits, 1);
  EXPECT_TRUE(row(nearly).right());
  EXPECT_FALSE(row(far).right());
  EXPECT_FALSE(row({0x3F80}).right());
  static kernels::CpuKernels cpu;
  measure_on(cpu);
}

TEST(Cases, NamesAreDifferent) {
  std::set<std::string> names;
  for (const Case& c : cases()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
}

}  // namespace
}  // namespace warmgate::numerics
