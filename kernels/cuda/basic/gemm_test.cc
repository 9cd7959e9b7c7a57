// Products at sizes that the matrix units take, in pieces where scratch is short, and captured.
#include "kernels/cuda/basic/gemm.h"

#include "kernels/cuda/basic/test_inputs.h"

namespace warmgate::kernels::cuda {
namespace {

constexpr double kLimit = 1.0 / 128;

class Products : public GpuTest {
 protected:
  std::vector<std::uint8_t> scales(std::int64_t count) {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(count));
    for (auto& v : out) v = static_cast<std::uint8_t>(127 + integer(-9, -5));
    return out;
  }
};

TEST_F(Products, Fp8AsOnTheHostWithMuchAndLittleScratch) {
  const std::int64_t tokens = 70, rows = 1544, columns = 1024;
  const auto x = bf16s(tokens * columns);
  const auto w = e4m3s(rows * columns);
  const auto s = scales((rows + 127) / 128 * (columns / 128));
  std::vector<cpu::Bf16> want(static_cast<std::size_t>(tokens * rows));
  cpu::gemm({tokens,
             x.data(),
             {cpu::WeightType::kFp8, w.data(), s.data(), rows, columns},
             cpu::OutputType::kBf16,
             want.data()});
  DeviceArray<cpu::Bf16> in(x), out(tokens * rows);
  DeviceArray<std::uint8_t> weights(w), blocks(s);
  cpu::Gemm p{tokens,
              in.data(),
              {cpu::WeightType::kFp8, weights.data(), blocks.data(), rows, columns},
              cpu::OutputType::kBf16,
              out.data()};
  for (const std::size_t bytes :
       {std::size_t{64} << 20, std::size_t{1} << 20, std::size_t{300} << 10}) {
    const TestLaunch launch(bytes);
    out.poison();
    ASSERT_EQ(can_run(p, launch.get()), std::nullopt) << bytes;
    run(p, launch.get());
    EXPECT_LE(worst_row(out.read(), want, rows), kLimit) << bytes << " bytes of scratch";
    EXPECT_EQ(out.overrun(), 0);
  }
  const TestLaunch none(4096);
  // Without cuBLASLt nothing is widened.
  EXPECT_EQ(can_run(p, none.get()).has_value(), gemm_note().starts_with("cuBLASLt"));
  p.tokens = 3;
  EXPECT_EQ(can_run(p, none.get()), std::nullopt) << "few tokens need no scratch";
}

TEST_F(Products, Fp4AsOnTheHost) {
  const std::int64_t tokens = 40, rows = 640, columns = 512;
  const auto x = bf16s(tokens * columns);
  std::vector<std::uint8_t> w(static_cast<std::size_t>(rows * columns / 2));
  for (auto& v : w) v = static_cast<std::uint8_t>(integer(0, 255));
  const auto s = scales(rows * columns / 32);
  DeviceArray<cpu::Bf16> in(x), out(tokens * rows);
  DeviceArray<std::uint8_t> weights(w), runs(s);
  const TestLaunch launch;
  for (const std::int64_t count : {1, 8, 9, 40}) {
    std::vector<cpu::Bf16> want(static_cast<std::size_t>(count * rows));
    cpu::gemm({count,
               x.data(),
               {cpu::WeightType::kFp4, w.data(), s.data(), rows, columns},
               cpu::OutputType::kBf16,
               want.data()});
    run(cpu::Gemm{count,
                  in.data(),
                  {cpu::WeightType::kFp4, weights.data(), runs.data(), rows, columns},
                  cpu::OutputType::kBf16,
                  out.data()},
        launch.get());
    auto got = out.read();
    got.resize(want.size());
    EXPECT_LE(worst_row(got, want, rows), kLimit) << count << " tokens";
  }
}

TEST_F(Products, GroupedProjectionInPieces) {
  const std::int64_t tokens = 150, groups = 8, rank = 128, inputs = 1024;
  const auto x = e4m3s(tokens * groups * inputs);
  std::vector<float> xs(static_cast<std::size_t>(tokens * groups * inputs / 128));
  for (float& v : xs) v = std::ldexp(1.0F, static_cast<int>(integer(-9, -4)));
  const auto w = e4m3s(groups * rank * inputs);
  const auto s = scales(groups * rank / 128 * (inputs / 128));
  std::vector<cpu::Bf16> want(static_cast<std::size_t>(tokens * groups * rank));
  cpu::grouped_projection({tokens,
                           groups,
                           rank,
                           inputs,
                           x.data(),
                           xs.data(),
                           {cpu::WeightType::kFp8, w.data(), s.data(), groups * rank, inputs},
                           want.data()});
  DeviceArray<std::uint8_t> in(x), weights(w), blocks(s);
  DeviceArray<float> scales_in(xs);
  DeviceArray<cpu::Bf16> out(tokens * groups * rank);
  const cpu::GroupedProjection p{
      tokens,
      groups,
      rank,
      inputs,
      in.data(),
      scales_in.data(),
      {cpu::WeightType::kFp8, weights.data(), blocks.data(), groups * rank, inputs},
      out.data()};
  // All at once; w whole and x in pieces; group by group.
  for (const std::size_t bytes :
       {std::size_t{64} << 20, std::size_t{4300} << 10, std::size_t{600} << 10}) {
    const TestLaunch launch(bytes);
    out.poison();
    ASSERT_EQ(can_run(p, launch.get()), std::nullopt) << bytes;
    run(p, launch.get());
    EXPECT_LE(worst_row(out.read(), want, rank), kLimit) << bytes << " bytes of scratch";
    EXPECT_EQ(out.overrun(), 0);
  }
}

TEST_F(Products, GatedMlpInPieces) {
  const std::int64_t tokens = 60, hidden = 512, inter = 256;
  const auto x = bf16s(tokens * hidden);
  const auto w13 = bf16s(2 * inter * hidden, 0.05F), w2 = bf16s(hidden * inter, 0.05F);
  std::vector<cpu::Bf16> want(static_cast<std::size_t>(tokens * hidden));
  const auto params = [&](auto* in, auto* a, auto* b, auto* y) {
    return cpu::GatedMlp{tokens,
                         in,
                         {cpu::WeightType::kBf16, a, nullptr, 2 * inter, hidden},
                         {cpu::WeightType::kBf16, b, nullptr, hidden, inter},
                         y,
                         10};
  };
  cpu::gated_mlp(params(x.data(), w13.data(), w2.data(), want.data()));
  DeviceArray<cpu::Bf16> in(x), a(w13), b(w2), out(tokens * hidden);
  const auto p = params(in.data(), a.data(), b.data(), out.data());
  for (const std::size_t bytes : {std::size_t{64} << 20, std::size_t{60} << 10}) {
    const TestLaunch launch(bytes);
    out.poison();
    ASSERT_EQ(can_run(p, launch.get()), std::nullopt) << bytes;
    run(p, launch.get());
    EXPECT_LE(worst_row(out.read(), want, hidden), kLimit) << bytes << " bytes of scratch";
    EXPECT_EQ(out.overrun(), 0);
  }
}

TEST_F(Products, ACapturedProductFollowsItsInputs) {
  const std::int64_t tokens = 64, rows = 512, columns = 256;
  const auto w = bf16s(rows * columns);
  DeviceArray<cpu::Bf16> weights(w), in(tokens * columns), out(tokens * rows), want(tokens * rows);
  const TestLaunch launch;
  cpu::Gemm p{tokens,
              in.data(),
              {cpu::WeightType::kBf16, weights.data(), nullptr, rows, columns},
              cpu::OutputType::kBf16,
              out.data()};
  in.write(bf16s(tokens * columns));
  // The very first call of this shape is captured: the choice of kernel happens in the capture.
  cudaStream_t stream = launch.get().stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  run(p, launch.get());
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  for (int i = 0; i < 2; ++i) {
    in.write(bf16s(tokens * columns));
    out.poison();
    ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    const auto got = out.read();
    p.y = want.data();
    run(p, launch.get());
    EXPECT_EQ(differ(got, want.read()), 0);
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

}  // namespace
}  // namespace warmgate::kernels::cuda
