#include "kernels/cuda/attention/sparse_prefill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <random>

#include "kernels/cpu/formats.h"
#include "kernels/cuda/attention/prefill_kernels.h"
#include "kernels/cuda/test_device.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/compare.h"

namespace warmgate::kernels::cuda {
namespace {

using cpu::Bf16;
using reference::Matrix;
using reference::Vector;
using Run = std::function<void(const cpu::SparsePrefill&, const Launch&)>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Bf16 kPoison = 0xFFFF;

struct Shape {
  std::int64_t heads = 64, width = 640, rows = 1500;
  std::vector<int> lens = {};
  float q_sigma = 1;
  bool whole_rows = false;
  double holes = 0;  // share of entries that are -1
};

// Inputs of one call on host and device; rows that no list names are NaN.
class Inputs {
 public:
  Inputs(const Shape& shape, std::uint64_t seed) : shape_(shape), rng_(seed) {
    const std::int64_t tokens = this->tokens(), heads = shape.heads, width = shape.width;
    q_ = values(tokens * heads * 512, shape.q_sigma);
    sink_.resize(static_cast<std::size_t>(heads));
    for (std::size_t h = 0; h < sink_.size(); ++h) {
      const float kinds[] = {-kInfinity, normal(1), kInfinity, 20, -100, normal(3)};
      sink_[h] = kinds[(h + seed) % 6];
    }
    kv_.assign(static_cast<std::size_t>(shape.rows * 512), kPoison);
    indices_.resize(static_cast<std::size_t>(tokens * width));
    std::vector<int> order(static_cast<std::size_t>(shape.rows));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::shuffle(order.begin(), order.end(), rng_);
      auto& keys = keys_.emplace_back();
      for (std::int64_t i = 0; i < width; ++i) add_entry(t, i, order, keys);
    }
  }

  std::int64_t tokens() const { return static_cast<std::int64_t>(shape_.lens.size()); }
  cpu::SparsePrefill on_device(DeviceArray<Bf16>& out) {
    if (!device_) device_ = std::make_unique<Device>(*this);
    cpu::SparsePrefill p;
    p.tokens = tokens(), p.heads = shape_.heads, p.width = shape_.width;
    p.q = device_->q.data(), p.kv = device_->kv.data(), p.indices = device_->indices.data();
    p.lens = device_->lens.data(), p.sink = device_->sink.data(), p.out = out.data();
    p.whole_rows = shape_.whole_rows;
    p.keys = shape_.whole_rows ? shape_.rows : 0;
    return p;
  }
  /// [tokens·heads, 512] of the output.
  Matrix computed(const Run& run, const Launch& launch) {
    DeviceArray<Bf16> out(tokens() * shape_.heads * 512);
    run(on_device(out), launch);
    const std::vector<Bf16> got = out.read();
    EXPECT_EQ(out.overrun(), 0);
    EXPECT_EQ(std::count(got.begin(), got.end(), kPoison), 0) << "elements not written";
    return {tokens() * shape_.heads, 512, Vector(widen(got.data(), got.size()))};
  }
  Matrix expected() const {
    Matrix out(tokens() * shape_.heads, 512);
    for (std::int64_t t = 0; t < tokens(); ++t) {
      const auto& list = keys_[static_cast<std::size_t>(t)];
      Matrix keys(static_cast<std::int64_t>(list.size()), 512);
      for (std::int64_t i = 0; i < keys.rows; ++i)
        keys.set_row(i, widen(kv_.data() + list[static_cast<std::size_t>(i)] * 512, 512));
      for (std::int64_t h = 0; h < shape_.heads; ++h) {
        const std::int64_t row = t * shape_.heads + h;
        out.set_row(row, reference::attend(widen(q_.data() + row * 512, 512), keys,
                                           sink_[static_cast<std::size_t>(h)],
                                           double{cpu::SparsePrefill{}.scale}));
      }
    }
    return out;
  }

 private:
  struct Device {
    explicit Device(const Inputs& in)
        : q(in.q_), kv(in.kv_), indices(in.indices_), lens(in.shape_.lens), sink(in.sink_) {}
    DeviceArray<Bf16> q, kv;
    DeviceArray<std::int32_t> indices, lens;
    DeviceArray<float> sink;
  };

  static Vector widen(const Bf16* from, std::size_t count) {
    Vector out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = double{cpu::to_float(from[i])};
    return out;
  }
  float normal(float sigma) { return sigma * std::normal_distribution<float>()(rng_); }
  std::vector<Bf16> values(std::int64_t count, float sigma) {
    std::vector<Bf16> out(static_cast<std::size_t>(count));
    for (Bf16& v : out) v = cpu::to_bf16(normal(sigma));
    return out;
  }
  double chance() { return std::uniform_real_distribution<double>(0, 1)(rng_); }

  void add_entry(std::int64_t t, std::int64_t i, const std::vector<int>& order,
                 std::vector<int>& keys) {
    std::int32_t& entry = indices_[static_cast<std::size_t>(t * shape_.width + i)];
    const int len = shape_.lens[static_cast<std::size_t>(t)];
    if (i >= len) {
      // Nobody may use these: beyond the length garbage, beyond the rows where all entries count.
      entry = static_cast<std::int32_t>(rng_() & 0x7FFFFFFF) | 0x40000000;
      if (shape_.whole_rows && i % 3 == 1) entry = -5;
      if (!shape_.whole_rows || len <= 0 || i % 3 != 0) return;
    }
    const int row = order[static_cast<std::size_t>(i)];
    entry = chance() < shape_.holes ? -1 : row;
    if (entry < 0) return;
    keys.push_back(row);
    if (kv_[static_cast<std::size_t>(row * 512)] != kPoison) return;
    const auto key = values(512, 1);
    std::copy(key.begin(), key.end(), kv_.begin() + row * 512);
  }

  Shape shape_;
  std::mt19937_64 rng_;
  std::vector<Bf16> q_, kv_;
  std::vector<std::int32_t> indices_;
  std::vector<float> sink_;
  std::vector<std::vector<int>> keys_;
  std::unique_ptr<Device> device_;
};

std::uint64_t fresh_seed() {
  const char* given = std::getenv("WARMGATE_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("WARMGATE_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

struct Kind {
  const char* name;
  Run run;
  int arch;  // 0: any
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class SparsePrefillTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!no_gpu().empty()) GTEST_SKIP() << no_gpu();
    launch_ = std::make_unique<TestLaunch>(std::size_t{1} << 20);
    if (GetParam().arch != 0 && launch_->get().arch != GetParam().arch)
      GTEST_SKIP() << "needs architecture " << GetParam().arch;
    seed_ = fresh_seed();
  }
  void agrees(const Shape& shape) {
    Inputs in(shape, seed_++);
    const Matrix got = in.computed(GetParam().run, launch_->get()), want = in.expected();
    const reference::Worst worst = reference::worst_row(got, want);
    std::printf("  heads %d width %d: error %.5f\n", static_cast<int>(shape.heads),
                static_cast<int>(shape.width), worst.error);
    EXPECT_LE(worst.error, reference::kRowLimit)
        << "token " << worst.row / shape.heads << " head " << worst.row % shape.heads;
    if (worst.error <= reference::kRowLimit) return;
    for (std::size_t t = 0; t < shape.lens.size(); ++t) {
      double most = 0;
      for (std::int64_t h = 0; h < shape.heads; ++h) {
        const std::int64_t row = static_cast<std::int64_t>(t) * shape.heads + h;
        most = std::max(most, reference::row_error(got.row(row), want.row(row)));
      }
      std::printf("    length %d: %.4f\n", shape.lens[t], most);
    }
    const auto g = got.row(worst.row), w = want.row(worst.row);
    for (const std::size_t c : {0, 1, 8, 63, 64, 127, 128, 256, 300, 511})
      std::printf("    channel %d: %.4f for %.4f\n", static_cast<int>(c), g[c], w[c]);
  }
  std::unique_ptr<TestLaunch> launch_;
  std::uint64_t seed_ = 0;
};

TEST_P(SparsePrefillTest, OneFullBlock) { agrees({.width = 64, .rows = 64, .lens = {64}}); }
TEST_P(SparsePrefillTest, LengthsAroundBlocks) {
  agrees({.lens = {0, 1, 63, 64, 65, 127, 128}});
  agrees({.lens = {129, 639, 640, 700, -3}});
}
TEST_P(SparsePrefillTest, WindowsOfAnyWidth) {
  agrees({.width = 1, .lens = {1, 0, 1}});
  agrees({.width = 77, .lens = {77, 13}});
  agrees({.width = 128, .lens = {128, 128, 5, 0, 90}});
}
TEST_P(SparsePrefillTest, TwoTilesOfHeads) { agrees({.heads = 128, .lens = {640, 65, 0, 300}}); }
TEST_P(SparsePrefillTest, TilesThatAreNotFull) {
  for (const std::int64_t heads : {1, 12, 72}) agrees({.heads = heads, .lens = {200, 0, 64}});
}
TEST_P(SparsePrefillTest, NegativeEntriesAreSkipped) {
  agrees({.lens = {640, 333, 64, 1, 128}, .holes = 0.3});
  agrees({.lens = {640, 70}, .holes = 1});
  agrees({.lens = {640, 70, 200}, .holes = 0.98});
}
TEST_P(SparsePrefillTest, WholeRowsCountButForEntriesOutside) {
  agrees({.lens = {0, 1, 64, 640, 300}, .whole_rows = true});
  agrees({.heads = 128, .lens = {20, 0}, .whole_rows = true, .holes = 0.2});
}
TEST_P(SparsePrefillTest, LargeAndSmallScores) {
  agrees({.lens = {640, 100, 17}, .q_sigma = 40});
  agrees({.lens = {640, 100, 17}, .q_sigma = 0.01F});
}
// More tiles than multiprocessors: one block of threads takes several, of different lengths.
TEST_P(SparsePrefillTest, ManyTokensInTurn) {
  Shape shape{.heads = 16, .width = 192};
  for (int t = 0; t < 420; ++t) shape.lens.push_back(t * 37 % 200);
  agrees(shape);
}

INSTANTIATE_TEST_SUITE_P(Kernels, SparsePrefillTest,
                         ::testing::Values(Kind{"general", run_prefill_general, 0},
                                           Kind{"sm90", run_prefill_sm90, 90}),
                         [](const auto& kind) { return std::string(kind.param.name); });

// Large enough that timing between the parts varies; the general kernel is the reference.
TEST(SparsePrefillPair, FastAgreesWithGeneralAndWithItself) {
  if (!no_gpu().empty()) GTEST_SKIP() << no_gpu();
  TestLaunch launch(std::size_t{1} << 20);
  if (launch.get().arch != 90) GTEST_SKIP() << "needs architecture 90";
  Shape shape{.heads = 128, .width = 640, .rows = 4000, .holes = 0.02};
  for (int t = 0; t < 300; ++t) shape.lens.push_back(t % 3 == 0 ? 640 : t * 71 % 641);
  Inputs in(shape, fresh_seed());
  const Matrix slow = in.computed(run_prefill_general, launch.get());
  const Matrix fast = in.computed(run_prefill_sm90, launch.get());
  const reference::Worst worst = reference::worst_row(fast, slow);
  std::printf("  error %.5f at token %d head %d\n", worst.error,
              static_cast<int>(worst.row / shape.heads), static_cast<int>(worst.row % shape.heads));
  EXPECT_LE(worst.error, reference::kRowLimit);
  for (int repeat = 0; repeat < 3; ++repeat)
    EXPECT_EQ(in.computed(run, launch.get()).values, fast.values) << "repeat " << repeat;
}

TEST(SparsePrefillRefusals, SayWhy) {
  cpu::SparsePrefill p;
  p.tokens = 1, p.heads = 64, p.width = 64;
  Launch launch;
  launch.arch = 90;
  EXPECT_EQ(can_run(p, launch), std::nullopt);
  launch.arch = 75;
  EXPECT_NE(can_run(p, launch), std::nullopt);
  launch.arch = 80;
  EXPECT_EQ(can_run(p, launch), std::nullopt);
  p.tokens = std::int64_t{1} << 40;
  EXPECT_NE(can_run(p, launch), std::nullopt);
  p.tokens = 1;
  p.width = std::int64_t{1} << 31;
  EXPECT_NE(can_run(p, launch), std::nullopt);
  p.width = 64;
  alignas(16) Bf16 row[16] = {};
  p.q = row + 1;
  EXPECT_NE(can_run(p, launch), std::nullopt);
}

}  // namespace
}  // namespace warmgate::kernels::cuda
