// What the numerics table does not ask: NaN and ties far apart, long rows, rows in any number.
#include <cmath>
#include <limits>

#include "kernels/cuda/basic/decoder.h"
#include "kernels/cuda/basic/markov.h"
#include "kernels/cuda/basic/test_inputs.h"

namespace warmgate::kernels::cuda {
namespace {

class Decoder : public GpuTest {};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_F(Decoder, ArgmaxIsThatOfTheHost) {
  for (const std::int64_t tokens : {1, 7, 300}) {
    const std::int64_t width = 129280, stride = width + 13;
    std::vector<float> logits = floats(tokens * stride);
    const auto row = [&](std::int64_t t) { return logits.data() + t % tokens * stride; };
    // Ties of the maximum at the edges of parts and of the row, NaN before and behind.
    for (const std::int64_t column : {width - 1, std::int64_t{77777}, std::int64_t{16160}})
      row(0)[column] = 50;
    row(0)[3] = kNan;
    row(1)[width - 1] = kInfinity;
    if (tokens > 3) {
      std::fill_n(row(2), width, kNan);
      std::fill_n(row(3), width, -kInfinity);
      std::fill_n(row(4), width, kNan);
      row(4)[99999] = -kInfinity;
      std::fill_n(row(5), width, -1.0F);
      row(5)[500] = -0.0F;
      row(5)[400] = -0.0F;
      row(5)[100000] = 0.0F;
    }
    for (std::int64_t t = 0; t < tokens; ++t) row(t)[width] = 1e30F;  // not a column
    std::vector<std::int64_t> ids(static_cast<std::size_t>(tokens));
    std::vector<float> best(static_cast<std::size_t>(tokens));
    cpu::argmax({tokens, width, stride, 1000, logits.data(), ids.data(), best.data()});
    const DeviceArray<float> in(logits), out_best(tokens);
    const DeviceArray<std::int64_t> out(tokens);
    for (const bool scratch : {true, false}) {
      const TestLaunch launch;
      Launch l = launch.get();
      if (!scratch) l.scratch = nullptr, l.scratch_bytes = 0;
      run(cpu::Argmax{tokens, width, stride, 1000, in.data(), out.data(), out_best.data()}, l);
      EXPECT_EQ(differ(out.read(), ids), 0) << tokens << " rows, scratch " << scratch;
      EXPECT_EQ(differ(out_best.read(), best), 0) << tokens << " rows, scratch " << scratch;
      run(cpu::Argmax{tokens, width, stride, 1000, in.data(), out.data(), nullptr}, l);
      EXPECT_EQ(differ(out.read(), ids), 0) << "without best";
    }
    EXPECT_EQ(out.overrun() + out_best.overrun(), 0);
  }
}

TEST_F(Decoder, SelectsMoreRowsThanOneLaunchTakes) {
  const TestLaunch launch;
  for (const std::int64_t width : {17, 64}) {
    const std::int64_t count = 700, rows_of_x = 900;
    const auto x = bf16s(rows_of_x * width);
    std::vector<cpu::Bf16> want(static_cast<std::size_t>(count * width));
    const DeviceArray<cpu::Bf16> in(x), out(count * width);
    {
      // The list is gone before the device runs.
      std::vector<std::int64_t> rows;
      for (std::int64_t i = 0; i < count; ++i) rows.push_back(integer(0, rows_of_x - 1));
      cpu::select_rows(count, width, rows.data(), x.data(), want.data());
      select_rows(count, width, rows.data(), in.data(), out.data(), launch.get());
      std::fill(rows.begin(), rows.end(), 0);
    }
    EXPECT_EQ(differ(out.read(), want), 0);
    EXPECT_EQ(out.overrun(), 0);
  }
}

TEST_F(Decoder, CopiesOfWideRows) {
  const TestLaunch launch;
  for (const std::int64_t width : {4096, 4100}) {
    const cpu::Copies shape{37, 4, width, width + 24};
    const auto x = bf16s(37 * width), y = bf16s(37 * width);
    std::vector<cpu::Bf16> residual(static_cast<std::size_t>(37 * 4 * width)),
        mean(static_cast<std::size_t>(37 * (width + 24)), cpu::Bf16{0xFFFF});
    cpu::spread_copies(shape, x.data(), residual.data());
    cpu::add_to_copies(shape, y.data(), residual.data());
    for (auto& v : residual) v = static_cast<cpu::Bf16>(v ^ (integer(0, 3) == 0 ? 1 : 0));
    cpu::mean_of_copies(shape, residual.data(), mean.data());
    const DeviceArray<cpu::Bf16> in(residual), out(37 * (width + 24));
    mean_of_copies(shape, in.data(), out.data(), launch.get());
    EXPECT_EQ(differ(out.read(), mean), 0) << "the gaps stay poisoned, too";
    EXPECT_EQ(out.overrun(), 0);
  }
}

TEST_F(Decoder, MarkovBias) {
  const TestLaunch launch;
  const std::int64_t tokens = 5, vocab = 1000, rank = 256, stride = 1003;
  const auto w1 = bf16s(vocab * rank), w2 = bf16s(vocab * rank, 0.1F);
  const auto base = floats(9 * stride);
  const std::vector<std::int64_t> previous{0, 999, 1000, -1, 17};
  std::vector<float> want(static_cast<std::size_t>(tokens * stride));
  const auto params = [&](auto* p, auto* a, auto* b, auto* c, auto* out) {
    return cpu::MarkovBias{tokens,
                           vocab,
                           rank,
                           p,
                           {cpu::WeightType::kBf16, a, nullptr, vocab, rank},
                           {cpu::WeightType::kBf16, b, nullptr, vocab, rank},
                           c,
                           9,
                           stride,
                           2,
                           1,
                           out,
                           stride};
  };
  cpu::markov_bias(params(previous.data(), w1.data(), w2.data(), base.data(), want.data()));
  const DeviceArray<cpu::Bf16> a(w1), b(w2);
  const DeviceArray<float> c(base), out(tokens * stride);
  const DeviceArray<std::int64_t> p(previous);
  const auto on_device = params(p.data(), a.data(), b.data(), c.data(), out.data());
  ASSERT_EQ(can_run(on_device, launch.get()), std::nullopt);
  run(on_device, launch.get());
  const auto got = out.read();
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t v = 0; v < vocab; ++v) {
      const auto i = static_cast<std::size_t>(t * stride + v);
      ASSERT_NEAR(got[i], want[i], 1e-4 * (1 + std::fabs(want[i]))) << t << " " << v;
    }
    EXPECT_TRUE(std::isnan(got[static_cast<std::size_t>(t * stride + vocab)]));
  }
}

}  // namespace
}  // namespace warmgate::kernels::cuda
