// Sparse decode on the device against the float64 oracle, and its kernels against each other.
#include "kernels/cuda/attention/sparse_decode_testing.h"

namespace warmgate::kernels::cuda {
namespace {

using namespace decode_testing;

TEST_F(DecodeTest, GeneralKernelEqualsTheOracle) {
  for (const std::int64_t heads : {1, 17, 64, 128}) {
    check_all(problem({3, heads, 128, 192}, -1, -1), std::to_string(heads) + " heads", {0});
  }
}

TEST_F(DecodeTest, LengthsAroundAStep) {
  for (const std::int64_t len : {0, 1, 63, 64, 65, 127, 128, 129}) {
    check_all(problem({2, 64, 128, 512}, len, len), "both " + std::to_string(len), {-1, 1, 3, 10});
    check_all(problem({2, 64, 128, 0}, len, 0), "window " + std::to_string(len), {-1, 1, 2});
  }
}

TEST_F(DecodeTest, AnyHeadsTokensAndWidths) {
  check_all(problem({1, 64, 128, 512}, 128, 512), "64 heads",
            {-1, 0, 1, 2, 5, 8, 10, 16, 202, 308, 902});
  check_all(problem({1, 128, 128, 1024}, 128, 1024), "128 heads", {-1, 0, 1, 4, 8, 11, 16, 204});
  check_all(problem({5, 64, 256, 512, 64, 2}, -1, -1), "C128 pages", {-1, 1, 2, 3, 4, 5, 6, 7, 8});
  check_all(problem({4, 100, 128, 128, 7, 5}, -1, -1), "100 heads", {-1, 1, 2});
  check_all(problem({3, 1, 64, 64}, -1, -1), "1 head", {-1, 1, 2});
  check_all(problem({2, 64, 37, 101}, -1, -1), "odd widths", {-1, 1, 2});
  check_all(problem({1, 64, 0, 64}, 0, -1), "no window", {-1, 1, 2});
}

TEST_F(DecodeTest, LongListsUseManyBlocks) {
  const Problem p = problem({1, 64, 128, 8192, 64, 2}, 128, 8000);
  check_all(p, "8192 wide", {-1, 1, 8});
  EXPECT_GT(decode_split(p.host(nullptr), launch_->get()).groups, 1);
}

TEST_F(DecodeTest, MoreTokensThanMultiprocessors) {
  const Problem many = problem({300, 64, 128, 64}, -1, -1);
  check_all(many, "300 tokens", {-1, 1, 2});
}

TEST_F(DecodeTest, NegativeIndicesAreSkippedWhereverTheyStand) {
  Problem holes = problem({3, 64, 128, 256}, 128, 250);
  for (auto* list : {&holes.indices, &holes.extra_indices}) {
    for (std::int32_t& index : *list) index = below(3) == 0 ? -1 - below(9) : index;
  }
  std::fill_n(holes.extra_indices.begin(), 70, -1);  // a whole step without keys comes first
  std::fill_n(holes.indices.begin() + 128, 128, -1), holes.extra_lens[1] = 0;  // no key at all
  check_all(holes, "holes", {-1, 0, 1, 2, 6, 13, 203});
  const auto out = run_on(*std::make_unique<OnDevice>(holes), -1);
  for (std::int64_t i = 64 * 512; i < 2 * 64 * 512; ++i) ASSERT_EQ(out[i], 0);
}

TEST_F(DecodeTest, Sinks) {
  Problem p = problem({2, 64, 128, 128}, 128, 77);
  p.sink[0] = -kInfinity, p.sink[1] = kInfinity, p.sink[2] = 300, p.sink[3] = -300, p.sink[4] = 8;
  p.sink[63] = kInfinity;
  OnDevice device(p);
  for (const int splits : {-1, 0, 1, 3, 10, 202}) {
    if (!possible(splits)) continue;
    const auto out = run_on(device, splits);
    for (std::int64_t c = 0; c < 512; ++c) {
      ASSERT_EQ(out[512 + c], 0);
      ASSERT_EQ(out[63 * 512 + c], 0);
    }
  }
  p.sink[2] = 30;  // with 300 nothing representable is left for the error to be relative to
  check_all(p, "sinks", {-1, 0, 1, 3, 10, 202});
}

TEST_F(DecodeTest, ScalesFarApart) {
  Problem p = problem({2, 64, 128, 128}, 128, 128, 10);
  check_all(p, "2^±10", {-1, 0, 1, 2});
  // Smallest and largest scales, on the same bits as the definition: heads of zeros are the mean.
  p = problem({1, 64, 64, 0}, 1, 0);
  std::fill(p.q.begin(), p.q.end(), Bf16{0});
  std::fill(p.sink.begin(), p.sink.end(), -kInfinity);
  for (int byte = 0; byte < 255; byte += 1) {
    const std::int32_t slot = p.indices[0];
    std::uint8_t* page = p.window->pages.base + slot / 64 * p.window->pages.stride;
    std::fill_n(page + 64 * 576 + slot % 64 * 8, 7, static_cast<std::uint8_t>(byte));
    std::vector<Bf16> expected(512);
    cpu::decode_ds_mla(p.window->pages, slot, expected.data());
    OnDevice device(p);
    for (const int splits : {0, -1}) {
      const auto out = run_on(device, splits);
      for (std::int64_t c = 0; c < 512; ++c) {
        // One key of weight 1. Matrix units may flush what is below 2^-126; zeros lose their sign.
        const double got = cpu::to_float(out[c]), ref = cpu::to_float(expected[c]);
        if (byte > 246) {  // 448·2^(byte-127) may be infinite, and 0·∞ is NaN for every channel
          ASSERT_FALSE(std::isinf(ref) && std::isfinite(got)) << byte;
        } else if (std::abs(ref) < 0x1p-126) {
          ASSERT_LT(std::abs(got), 0x1p-126) << byte;
        } else {
          ASSERT_EQ(got, ref) << byte << " " << c << " splits " << splits;
        }
      }
    }
  }
}

TEST_F(DecodeTest, NanCodesStayNan) {
  Problem p = problem({1, 64, 64, 0}, 40, 0);
  const std::int32_t slot = p.indices[17];
  p.window->pages.base[slot / 64 * p.window->pages.stride + slot % 64 * 576 + 5] = 0x7F;
  OnDevice device(p);
  for (const int splits : {0, 1}) {
    if (!possible(splits)) continue;
    const auto out = run_on(device, splits);
    EXPECT_TRUE(std::isnan(cpu::to_float(out[5]))) << splits;
  }
}

// What an engine's small step looks like: a padding token, lists far shorter than their widths.
TEST_F(DecodeTest, ShortListsInWideRows) {
  const std::int32_t lens[4][2] = {{128, 32}, {128, 33}, {5, 1}, {0, 0}};
  const std::vector<int> splits = {-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 16, 202, 208};
  Problem p = problem({4, 64, 128, 512}, 128, 33);
  for (int t = 0; t < 4; ++t) p.lens[t] = lens[t][0], p.extra_lens[t] = lens[t][1];
  check_all(p, "four tokens", splits);
  for (const auto& [window, extra] : lens) {
    check_all(problem({1, 64, 128, 512}, window, extra),
              std::to_string(window) + " + " + std::to_string(extra), splits);
  }
}

TEST_F(DecodeTest, NanInQStaysInItsHead) {
  Problem p = problem({2, 64, 128, 512}, 128, 100);
  p.q[3 * 512 + 7] = 0x7FC0;
  OnDevice device(p);
  for (const int splits : {-1, 0, 1, 3, 5, 10, 202}) {
    if (!possible(splits)) continue;
    const auto out = run_on(device, splits);
    for (std::int64_t i = 0; i < 64 * 512; ++i)
      ASSERT_EQ(std::isnan(cpu::to_float(out[i])), i / 512 == 3) << i << " splits " << splits;
  }
}

TEST_F(DecodeTest, EqualKeysAreTheirOwnMean) {
  Problem p = problem({1, 64, 128, 256}, 128, 133);
  for (const auto* memory : {p.window.get(), p.extra.get()}) {
    const std::vector<Bf16> ones(512, cpu::to_bf16(1));
    for (std::int64_t i = 0; i < (memory == p.window.get() ? 128 : 133); ++i) {
      const std::int64_t slot = (memory == p.window.get() ? p.indices : p.extra_indices)[i];
      cpu::insert_ds_mla({1, ones.data(), 512, &slot, memory->pages});
    }
  }
  std::fill(p.sink.begin(), p.sink.end(), -kInfinity);
  OnDevice device(p);
  for (const int splits : {-1, 1, 3, 5, 10, 302}) {
    if (!possible(splits)) continue;
    const auto out = run_on(device, splits);
    for (const Bf16 v : out) ASSERT_EQ(cpu::to_float(v), 1.0F) << splits;
  }
}

TEST_F(DecodeTest, PaddingThatCounts) {
  Problem p = problem({3, 64, 128, 64}, 128, -1);
  p.lens = {5, 0, 128};
  for (std::size_t i = 0; i < p.indices.size(); ++i) {
    if (i % 128 >= 100) p.indices[i] = -1;  // read as slot 0
  }
  encode(p.window->pages, 0, 3);
  p.counts_padding = true;
  check_all(p, "padding", {-1, 0, 1, 2});
}

TEST_F(DecodeTest, SameBitsAgainAndWhateverLiesInScratch) {
  const Problem p = problem({7, 64, 128, 512}, -1, -1);
  OnDevice device(p);
  const auto first = run_on(device, -1);
  for (int i = 0; i < 10; ++i) {
    check(cudaMemset(launch_->get().scratch, i * 37, 1 << 20), "cudaMemset");
    ASSERT_TRUE(cpu::same_bits(first, run_on(device, -1)));
  }
}

TEST_F(DecodeTest, LengthsMayChangeBetweenReplays) {
  Problem p = problem({4, 64, 128, 512}, 128, 512);
  OnDevice device(p);
  run_on(device, -1);
  cudaStream_t stream = launch_->get().stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  run(device.p, launch_->get());
  check(cudaStreamEndCapture(stream, &graph), "end capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  for (const std::int32_t len : {512, 1, 0, 300, 9999, -4}) {
    for (auto& l : p.extra_lens) l = len;
    for (auto& l : p.lens) l = len / 3;
    device.lens.write(p.lens), device.extra_lens.write(p.extra_lens);
    device.out.poison();
    check(cudaGraphLaunch(exec, stream), "replay");
    const auto out = device.out.read();
    expect_right(expected(p), out, "replay with " + std::to_string(len));
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_F(DecodeTest, WhatItCannotRunIsSaid) {
  const Problem p = problem({1, 64, 64, 0}, 1, 0);
  OnDevice device(p);
  cpu::SparseDecode bad = device.p;
  bad.heads = 129;
  EXPECT_NE(can_run(bad, launch_->get())->find("129 heads"), std::string::npos);
  bad = device.p, bad.window.base += 8;
  EXPECT_NE(can_run(bad, launch_->get())->find("window pages are not aligned"), std::string::npos);
}

}  // namespace
}  // namespace warmgate::kernels::cuda
