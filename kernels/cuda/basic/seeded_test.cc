// Weights of the device have the bits of the host's, whatever part of the whole is asked for.
#include "kernels/cuda/basic/seeded.h"
#include "kernels/cuda/basic/rope.h"
#include "kernels/cuda/basic/test_inputs.h"

namespace warmgate::kernels::cuda {
namespace {

class Seeded : public GpuTest {
 protected:
  // Parts that begin and end inside blocks of 128, with padding below and to the right.
  cpu::SeededMatrix part(bool fp4) {
    cpu::SeededMatrix m;
    m.key = random();
    m.exponent = static_cast<int>(integer(-12, -4));
    m.even = integer(0, 4) == 0;
    for (auto& run : m.runs) {
      run.first = integer(0, 300);
      run.count = integer(0, 400);
      run.valid = integer(0, 2) == 0 ? integer(0, run.count) : run.count;
    }
    m.columns = integer(1, 500);
    if (integer(0, 1) == 0) m.columns = (m.columns + 7) / 8 * 8;
    m.first_column = integer(0, 1) == 0 ? integer(0, 300) : 8 * integer(0, 40);
    m.whole_columns = m.first_column + integer(1, 2 * m.columns);
    if (fp4) m.exponent += 4;
    return m;
  }
  static std::int64_t elements(const cpu::SeededMatrix& m) {
    return (m.runs[0].count + m.runs[1].count) * m.columns;
  }
};

template <class T>
void same(const cpu::SeededMatrix& m, std::int64_t count, const Launch& launch) {
  std::vector<T> want(static_cast<std::size_t>(count));
  cpu::fill_seeded(m, want.data());
  const DeviceArray<T> out(count);
  fill_seeded(m, out.data(), launch);
  EXPECT_EQ(differ(out.read(), want), 0) << "of " << count;
  EXPECT_EQ(out.overrun(), 0);
}

TEST_F(Seeded, FloatsOfEveryPart) {
  const TestLaunch launch;
  for (int i = 0; i < 30; ++i) {
    cpu::SeededMatrix m = part(false);
    same<cpu::Bf16>(m, elements(m), launch.get());
    same<float>(m, elements(m), launch.get());
    m.offset = 1;
    m.exponent = static_cast<int>(integer(-7, -3));
    same<cpu::Bf16>(m, elements(m), launch.get());
  }
}

TEST_F(Seeded, Fp8WithItsScales) {
  const TestLaunch launch;
  for (int i = 0; i < 40; ++i) {
    const cpu::SeededMatrix m = part(false);
    const std::int64_t count = elements(m), rows = m.runs[0].count + m.runs[1].count;
    const std::int64_t blocks = (rows + 127) / 128 * ((m.columns + 127) / 128);
    std::vector<std::uint8_t> want(static_cast<std::size_t>(count)),
        want_scales(static_cast<std::size_t>(blocks));
    cpu::fill_seeded(m, want.data(), want_scales.data());
    const DeviceArray<std::uint8_t> out(count), scales(blocks);
    fill_seeded(m, out.data(), scales.data(), launch.get());
    EXPECT_EQ(differ(scales.read(), want_scales), 0) << "scales of " << blocks;
    EXPECT_EQ(differ(out.read(), want), 0) << "of " << count;
    EXPECT_EQ(out.overrun() + scales.overrun(), 0);
  }
}

TEST_F(Seeded, Fp4WithItsScales) {
  const TestLaunch launch;
  for (int i = 0; i < 40; ++i) {
    const cpu::SeededMatrix m = part(true);
    const std::int64_t count = elements(m);
    std::vector<std::uint8_t> want(static_cast<std::size_t>((count + 1) / 2)),
        want_scales(static_cast<std::size_t>((count + 31) / 32));
    cpu::fill_seeded_fp4(m, want.data(), want_scales.data());
    const DeviceArray<std::uint8_t> out((count + 1) / 2), scales((count + 31) / 32);
    fill_seeded_fp4(m, out.data(), scales.data(), launch.get());
    EXPECT_EQ(differ(scales.read(), want_scales), 0);
    EXPECT_EQ(differ(out.read(), want), 0) << "of " << count;
    EXPECT_EQ(out.overrun() + scales.overrun(), 0);
  }
}

TEST_F(Seeded, RopeTableNearlyBitForBit) {
  const TestLaunch launch;
  cpu::RopeTable p;
  p.rows = 300000;
  p.theta = 160000;
  std::vector<float> want(static_cast<std::size_t>(p.rows * 64));
  p.table = want.data();
  cpu::fill_rope_table(p);
  const DeviceArray<float> out(p.rows * 64);
  p.table = out.data();
  run(p, launch.get());
  // Both round a double whose last bits differ: one value in millions may land on the other side.
  EXPECT_LE(differ(out.read(), want), 20) << "of " << want.size();
  EXPECT_EQ(out.overrun(), 0);
}

}  // namespace
}  // namespace warmgate::kernels::cuda
