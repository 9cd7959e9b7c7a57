// Choices of entries: the CPU kernels' bits.
#include "kernels/cuda/indexer/topk.h"

#include "kernels/cuda/indexer/testing.h"
#include "kernels/cuda/indexer/topk_paths.h"

namespace warmgate::kernels::cuda {
namespace {

class TopkTest : public IndexerTest {
 protected:
  enum Kind { kRandom, kTies, kSpecial, kSame, kAscending, kKinds };
  float score(int kind, std::int64_t column) {
    if (kind == kRandom) return normal();
    if (kind == kTies) return static_cast<float>(below(9)) - 4;
    if (kind == kSame) return 1.5F;
    if (kind == kAscending) return static_cast<float>(column);
    const std::int64_t what = below(7);
    return what == 0   ? -std::numeric_limits<float>::infinity()
           : what == 1 ? std::numeric_limits<float>::quiet_NaN()
           : what == 2 ? -0.0F
           : what == 3 ? 0.0F
           : what == 4 ? std::numeric_limits<float>::infinity()
           : what == 5 ? 1e-42F
                       : normal();
  }
  template <class Run>
  void compare(std::int64_t tokens, std::int64_t topk, std::int64_t stride, bool from_zero,
               const Run& run_it) {
    const std::int64_t out_stride = topk + below(4);
    std::vector<float> logits(static_cast<std::size_t>(tokens * stride), 1e30F);
    std::vector<std::int32_t> start, end;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t counts[] = {0,        1,        topk - 1, topk,
                                     topk + 1, 2 * topk, stride,   below(stride + 1)};
      const std::int64_t first = from_zero ? 0 : below(std::min<std::int64_t>(stride, 40));
      const std::int64_t count =
          std::clamp<std::int64_t>(counts[t < 8 ? 7 - t : below(8)], 0, stride - first);
      start.push_back(static_cast<std::int32_t>(first));
      end.push_back(static_cast<std::int32_t>(first + count));
      const int kind = static_cast<int>(below(kKinds));
      for (std::int64_t j = first; j < first + count; ++j) {
        logits[static_cast<std::size_t>(t * stride + j)] = score(kind, j);
      }
    }
    std::vector<std::int32_t> want(static_cast<std::size_t>(tokens * out_stride), -1);
    cpu::TopkPerRow p{
        tokens,     topk,        logits.data(), stride, from_zero ? nullptr : start.data(),
        end.data(), want.data(), out_stride};
    cpu::topk_per_row(p);
    const DeviceArray<float> d_logits(logits);
    const DeviceArray<std::int32_t> d_start(start), d_end(end), out(tokens * out_stride);
    p = {tokens,       topk,       d_logits.data(), stride, from_zero ? nullptr : d_start.data(),
         d_end.data(), out.data(), out_stride};
    run_it(p);
    const auto got = out.read();
    const std::int64_t at = first_difference(got, want);
    ASSERT_EQ(at, -1) << "token " << at / out_stride << " place " << at % out_stride << ": "
                      << got[static_cast<std::size_t>(at)] << " for "
                      << want[static_cast<std::size_t>(at)] << "; topk " << topk << ", columns "
                      << start[static_cast<std::size_t>(at / out_stride)] << ".."
                      << end[static_cast<std::size_t>(at / out_stride)];
    ASSERT_EQ(out.overrun(), 0);
  }
};

TEST_F(TopkTest, GeneralHasTheBitsOfTheCpu) {
  TestLaunch launch(1 << 20);
  const auto run_it = [&](const cpu::TopkPerRow& p) { topk::run_general(p, launch.get()); };
  for (const std::int64_t topk : {1, 7, 512, 1024, 2048}) {
    compare(20, topk, 3001, false, run_it);
    compare(9, topk, 5000, true, run_it);
  }
  compare(2, 512, 300001, true, run_it);
}

TEST_F(TopkTest, ClustersHaveTheBitsOfTheCpu) {
  TestLaunch launch(1 << 20);
  WG_NEEDS_HOPPER(launch.get());
  const auto run_it = [&](const cpu::TopkPerRow& p) {
    ASSERT_FALSE(topk::fits_cluster(p, launch.get()));
    topk::run_cluster(p, launch.get());
  };
  for (const std::int64_t topk : {1, 7, 512, 1024, 2048}) {
    for (const std::int64_t columns : {64, 4096, 4100, 8192, 16384, 16388}) {
      compare(12, topk, columns, below(2) == 0, run_it);
    }
    compare(150, topk, 3004, false, run_it);
    compare(140, topk, 16384, false, run_it);
    compare(70, topk, 40000, false, run_it);
  }
  compare(3, 512, 262144, false, run_it);
  compare(1, 2048, 262144, true, run_it);
}

// Each way to share a row among blocks once, and few rows: what a sanitizer can follow.
TEST_F(TopkTest, AFewRowsOnClusters) {
  TestLaunch launch(1 << 20);
  WG_NEEDS_HOPPER(launch.get());
  Launch chip = launch.get();
  const auto run_it = [&](const cpu::TopkPerRow& p) { topk::run_cluster(p, chip); };
  chip.multiprocessors = 8;
  compare(2, 512, 9000, false, run_it);   // four blocks
  compare(4, 512, 9000, false, run_it);   // two
  compare(4, 512, 20000, false, run_it);  // two, as one is not enough
  chip.multiprocessors = 1;
  compare(5, 100, 4096, false, run_it);  // one
  compare(5, 600, 8000, false, run_it);
}

// Two blocks take many rows in turn, some of which they need not read.
TEST_F(TopkTest, RowsInTurnHaveTheBitsOfTheCpu) {
  TestLaunch launch(1 << 20);
  WG_NEEDS_HOPPER(launch.get());
  Launch chip = launch.get();
  chip.multiprocessors = 1;
  const auto run_it = [&](const cpu::TopkPerRow& p) {
    ASSERT_FALSE(topk::fits_cluster(p, chip));
    topk::run_cluster(p, chip);
  };
  for (const std::int64_t topk : {1, 512, 1024, 2048}) {
    compare(30, topk, 8200 + 4 * below(2047), below(2) == 0, run_it);
  }
}

TEST_F(TopkTest, ShortContexts) {
  TestLaunch launch(1 << 20);
  const std::int64_t topk = 512, stride = 515;
  const std::vector<std::int64_t> positions{0,   1,    2,    3,    4,    6,    7,     63,  64, 65,
                                            127, 2046, 2047, 2048, 2051, 2052, 99999, 255, -1, 511};
  const auto tokens = static_cast<std::int64_t>(positions.size());
  std::vector<std::int32_t> want(static_cast<std::size_t>(tokens * stride), -1);
  cpu::fill_short_context({tokens, topk, 4, positions.data(), want.data(), stride});
  const DeviceArray<std::int64_t> d_positions(positions);
  const DeviceArray<std::int32_t> out(tokens * stride);
  const cpu::FillShortContext p{tokens, topk, 4, d_positions.data(), out.data(), stride};
  ASSERT_FALSE(can_run(p, launch.get()));
  run(p, launch.get());
  EXPECT_EQ(first_difference(out.read(), want), -1);
}

TEST_F(TopkTest, GlobalSlotsAndCounts) {
  TestLaunch launch(1 << 20);
  const std::int64_t tokens = 37, requests = 5, blocks = 9, rows = 64;
  for (const std::int64_t width : {1, 31, 128, 512, 1100}) {
    auto table = shuffled(requests * blocks);
    table[3] = -1;
    std::vector<std::int32_t> local, token_to_req;
    std::vector<std::uint8_t> valid;
    for (std::int64_t i = 0; i < tokens * width; ++i) {
      local.push_back(static_cast<std::int32_t>(below(4) == 0 ? -1 : below(blocks * rows)));
    }
    for (std::int64_t t = 0; t < tokens; ++t) {
      token_to_req.push_back(static_cast<std::int32_t>(below(requests)));
      valid.push_back(below(4) == 0 ? 0 : 1);
    }
    std::vector<std::int32_t> global(local.size()), lens(static_cast<std::size_t>(tokens));
    cpu::GlobalTopkIndices p{tokens,
                             width,
                             local.data(),
                             token_to_req.data(),
                             {table.data(), blocks, rows},
                             valid.data(),
                             global.data(),
                             lens.data()};
    cpu::global_topk_indices(p);
    const DeviceArray<std::int32_t> d_local(local), d_req(token_to_req), d_table(table);
    const DeviceArray<std::uint8_t> d_valid(valid);
    const DeviceArray<std::int32_t> d_global(tokens * width), d_lens(tokens);
    p = {tokens,
         width,
         d_local.data(),
         d_req.data(),
         {d_table.data(), blocks, rows},
         d_valid.data(),
         d_global.data(),
         d_lens.data()};
    ASSERT_FALSE(can_run(p, launch.get()));
    run(p, launch.get());
    ASSERT_EQ(first_difference(d_global.read(), global), -1) << "width " << width;
    ASSERT_EQ(first_difference(d_lens.read(), lens), -1) << "width " << width;
  }
}

}  // namespace
}  // namespace warmgate::kernels::cuda
