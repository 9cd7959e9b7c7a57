// Scores against the float64 oracle of the quantised inputs, path by path, and one path against the
// other.
#include "kernels/cuda/indexer/logits.h"
#include "kernels/cuda/indexer/logits_paths.h"
#include "kernels/cuda/indexer/logits_testing.h"

namespace warmgate::kernels::cuda {
namespace {

using cpu::IndexFormat;

// ‖out − oracle‖ of a token's scores over the norm of Σ_head |ReLU(q·k)·w|: weights of both signs
// cancel, so the scores' own norm says little where a token sees few keys. fp32 sums of exact
// products; the tensor cores drop what lies 13 bits behind the largest product of a sum.
constexpr double kExactLimit = 1e-6, kTensorLimit = 5e-4;

TEST_F(LogitsTest, GeneralPrefillOfAnyFormatAndHeads) {
  TestLaunch launch(1 << 20);
  const auto run_it = [&](const cpu::MqaLogitsPrefill& p) { logits::run_general(p, launch.get()); };
  for (const IndexFormat format : {IndexFormat::kFp8, IndexFormat::kMxfp4}) {
    for (const std::int64_t heads : {1, 8, 33, 64}) {
      const double error = prefill(format, heads, 1 + below(20), 1 + below(400), run_it);
      EXPECT_LE(error, kExactLimit) << heads << " heads";
      std::printf("general prefill, %d heads: error %.2e\n", static_cast<int>(heads), error);
    }
  }
}

TEST_F(LogitsTest, GeneralPagedOfAnyFormatAndHeads) {
  TestLaunch launch(1 << 20);
  const auto run_it = [&](const cpu::MqaLogitsPaged& p) { logits::run_general(p, launch.get()); };
  for (const IndexFormat format : {IndexFormat::kFp8, IndexFormat::kMxfp4}) {
    const double error = paged(format, 1 + below(70), 3, 1 + below(5), 300, run_it);
    EXPECT_LE(error, kExactLimit);
    std::printf("general paged: error %.2e\n", error);
  }
}

TEST_F(LogitsTest, HopperPrefill) {
  TestLaunch launch(1 << 20);
  WG_NEEDS_HOPPER(launch.get());
  double worst = 0;
  for (const std::int64_t tokens : {1, 2, 3, 4, 5, 8, 9, 31, 70}) {
    const double error = prefill(IndexFormat::kFp8, 64, tokens, tokens < 4 ? 1 + below(70) : 400,
                                 [&](const cpu::MqaLogitsPrefill& p) {
                                   ASSERT_FALSE(logits::fits_hopper(p, launch.get()));
                                   logits::run_hopper(p, launch.get());
                                 });
    ASSERT_LE(error, kTensorLimit) << tokens << " tokens";
    worst = std::max(worst, error);
  }
  EXPECT_LE(overall(), 1e-3);
  std::printf("hopper prefill: error %.2e, over all scores %.2e\n", worst, overall());
}

TEST_F(LogitsTest, HopperPaged) {
  TestLaunch launch(1 << 20);
  WG_NEEDS_HOPPER(launch.get());
  for (const std::int64_t next_n : {1, 2, 3, 4, 5, 8}) {
    double worst = 0;
    for (const std::int64_t requests : {1, 2, 7}) {
      const double error =
          paged(IndexFormat::kFp8, 64, requests, next_n, 260, [&](const cpu::MqaLogitsPaged& p) {
            ASSERT_FALSE(logits::fits_hopper(p, launch.get()));
            logits::run_hopper(p, launch.get());
          });
      ASSERT_LE(error, kTensorLimit) << requests << " requests, next_n " << next_n;
      worst = std::max(worst, error);
    }
    EXPECT_LE(overall(), 1e-3);
    std::printf("hopper paged, next_n %d: error %.2e, over all scores %.2e\n",
                static_cast<int>(next_n), worst, overall());
  }
}

TEST_F(LogitsTest, NothingToScoreWritesNothing) {
  TestLaunch launch(1 << 20);
  const std::int64_t tokens = 9;
  const Queries in = queries(IndexFormat::kFp8, tokens, 64);
  const DeviceArray<std::uint8_t> q(in.q), values(128), scales(4);
  const DeviceArray<float> w(in.w), out(tokens * 10);
  const std::vector<std::int32_t> same(tokens, 3);
  const DeviceArray<std::int32_t> start(same), end(same);
  run(cpu::MqaLogitsPrefill{tokens, 64, IndexFormat::kFp8, q.data(), nullptr, w.data(),
                            values.data(), scales.data(), start.data(), end.data(), out.data(), 10},
      launch.get());
  for (const float v : out.read()) ASSERT_TRUE(std::isnan(v));
}

// Many tiles a block, groups that cross blocks: both paths, and a key of NaN that must show.
TEST_F(LogitsTest, LargeHopperAgreesWithGeneral) {
  TestLaunch launch(1 << 20);
  WG_NEEDS_HOPPER(launch.get());
  const std::int64_t tokens = 150, keys = 9000 + below(500), stride = keys + below(7);
  const Queries in = queries(IndexFormat::kFp8, tokens, 64);
  std::vector<std::uint8_t> values(static_cast<std::size_t>(keys * 128));
  std::vector<std::uint8_t> scales(static_cast<std::size_t>(keys * 4));
  for (std::int64_t j = 0; j < keys; ++j) {
    const auto x = floats(128);
    cpu::encode_index_row(IndexFormat::kFp8, x.data(), values.data() + j * 128,
                          scales.data() + j * 4);
  }
  const std::int64_t poisoned = below(keys);
  values[static_cast<std::size_t>(poisoned * 128 + below(128))] = 0x7F;
  std::vector<std::int32_t> start, end;
  for (std::int64_t t = 0; t < tokens; ++t) {
    start.push_back(static_cast<std::int32_t>(below(100)));
    end.push_back(static_cast<std::int32_t>(start.back() + below(keys - start.back() + 1)));
  }
  const DeviceArray<std::uint8_t> q(in.q), d_values(values), d_scales(scales);
  const DeviceArray<float> w(in.w), fast(tokens * stride), plain(tokens * stride);
  const DeviceArray<std::int32_t> d_start(start), d_end(end);
  cpu::MqaLogitsPrefill p{tokens,         64,           IndexFormat::kFp8, q.data(),
                          nullptr,        w.data(),     d_values.data(),   d_scales.data(),
                          d_start.data(), d_end.data(), plain.data(),      stride};
  logits::run_general(p, launch.get());
  p.logits = fast.data();
  run(p, launch.get());
  const auto a = fast.read(), b = plain.read();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::isnan(a[i]), std::isnan(b[i]))
        << "token " << i / static_cast<std::size_t>(stride) << " column "
        << i % static_cast<std::size_t>(stride);
    if (std::isnan(a[i])) continue;
    difference += std::pow(double{a[i]} - b[i], 2);
    norm += std::pow(double{b[i]}, 2);
  }
  const double error = std::sqrt(difference / norm);
  std::printf("large prefill, hopper against general: %.2e\n", error);
  EXPECT_LE(error, 1e-3);  // of the scores' own norm
}

}  // namespace
}  // namespace warmgate::kernels::cuda
