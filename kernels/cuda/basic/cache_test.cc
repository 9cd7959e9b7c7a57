// Cache kernels at sizes that fill a GPU, bit for bit as on the host; refusals.
#include <algorithm>

#include "kernels/cuda/basic/compressor.h"
#include "kernels/cuda/basic/norm.h"
#include "kernels/cuda/basic/output.h"
#include "kernels/cuda/basic/pages.h"
#include "kernels/cuda/basic/test_inputs.h"

namespace warmgate::kernels::cuda {
namespace {

class CacheKernels : public GpuTest {};

TEST_F(CacheKernels, InsertAndGatherManyRows) {
  const TestLaunch launch;
  const std::int64_t tokens = 9001, rows = 64, pages = 160, stride = 37440;
  const auto k = bf16s(tokens * 512, 3);
  std::vector<std::int64_t> slots(static_cast<std::size_t>(pages * rows));
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::int64_t>(i);
  std::shuffle(slots.begin(), slots.end(), random);
  slots.resize(static_cast<std::size_t>(tokens));
  for (std::size_t i = 0; i < slots.size(); i += 7) slots[i] = -1;
  std::vector<std::uint8_t> want(static_cast<std::size_t>(pages * stride), 0xFF);
  cpu::InsertDsMla p{tokens, k.data(), 512, slots.data(), {want.data(), stride, rows}};
  cpu::insert_ds_mla(p);
  DeviceArray<cpu::Bf16> in(k);
  DeviceArray<std::int64_t> at(slots);
  DeviceArray<std::uint8_t> cache(pages * stride);
  p.k = in.data();
  p.slots = at.data();
  p.pages.base = cache.data();
  ASSERT_EQ(can_run(p, launch.get()), std::nullopt);
  run(p, launch.get());
  EXPECT_EQ(differ(cache.read(), want), 0);

  // Every slot is a row of one of two requests; a freed block reads as page 0.
  std::vector<std::int32_t> table(160);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i);
  std::shuffle(table.begin(), table.end(), random);
  table[3] = -1;
  const std::vector<std::int32_t> lens{80 * 64 - 5, 4097};
  for (auto& byte : want) byte = byte == 0xFF ? 0 : byte;  // no NaN: its sign is not promised
  cache.write(want);
  const std::int64_t per_request = 80 * 64 * 512;
  std::vector<cpu::Bf16> gathered(static_cast<std::size_t>(2 * per_request), cpu::Bf16{0xFFFF});
  cpu::DequantGather g{2,
                       1,
                       0,
                       per_request,
                       lens.data(),
                       nullptr,
                       {want.data(), stride, rows},
                       {table.data(), 80, rows},
                       gathered.data()};
  cpu::dequant_gather(g);
  DeviceArray<std::int32_t> entries(table), lengths(lens);
  DeviceArray<cpu::Bf16> kv(2 * per_request);
  g.seq_lens = lengths.data();
  g.pages.base = cache.data();
  g.table.entries = entries.data();
  g.kv = kv.data();
  run(g, launch.get());
  EXPECT_EQ(differ(kv.read(), gathered), 0);
  EXPECT_EQ(kv.overrun() + cache.overrun(), 0);
}

TEST_F(CacheKernels, CompressedEntriesOfManyRequests) {
  // Tokens of many requests that end windows side by side: several entries a block.
  const TestLaunch launch;
  for (const std::int64_t ratio : {4, 128}) {
    const std::int64_t requests = 40, overlap = ratio == 4 ? 1 : 0, width = (1 + overlap) * 512;
    const std::int64_t page_rows = 8, page_bytes = page_rows * 2 * width * 4;
    const std::int64_t pages_each = 256 / page_rows, tokens = requests * 140;
    std::vector<float> states = floats(requests * 256 * 2 * width);
    std::vector<std::int32_t> table(static_cast<std::size_t>(requests * pages_each)), request;
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i);
    std::vector<std::int64_t> positions, slots;
    for (std::int64_t t = 0; t < tokens; ++t) {
      request.push_back(static_cast<std::int32_t>(t % requests));
      positions.push_back(t / requests + 110);
      slots.push_back((positions.back() + 1) % ratio == 0
                          ? request.back() * 64 + positions.back() / ratio
                          : -1);
    }
    const auto norm = bf16s(512);
    const auto angles = floats(256 * 64);
    const std::int64_t stride = 37440;
    std::vector<std::uint8_t> want(static_cast<std::size_t>(requests * stride), 0xFF);
    cpu::CompressWindow p;
    p.tokens = tokens, p.ratio = ratio, p.overlap = overlap, p.dim = 512;
    p.state = {reinterpret_cast<std::uint8_t*>(states.data()), page_bytes, page_rows};
    p.state_table = {table.data(), pages_each, page_rows};
    p.token_to_req = request.data(), p.positions = positions.data(), p.norm = norm.data();
    p.cos_sin = angles.data(), p.slots = slots.data();
    p.cache = {want.data(), stride, 64};
    cpu::compress_window(p);
    DeviceArray<float> state(states), rope(angles);
    DeviceArray<std::int32_t> entries(table), requests_of(request);
    DeviceArray<std::int64_t> at(positions), to(slots);
    DeviceArray<cpu::Bf16> weight(norm);
    DeviceArray<std::uint8_t> cache(requests * stride);
    p.state.base = reinterpret_cast<std::uint8_t*>(state.data());
    p.state_table.entries = entries.data(), p.token_to_req = requests_of.data();
    p.positions = at.data(), p.norm = weight.data(), p.cos_sin = rope.data();
    p.slots = to.data(), p.cache.base = cache.data();
    ASSERT_EQ(can_run(p, launch.get()), std::nullopt);
    run(p, launch.get());
    // Sums in another order: a code in thousands may lie on the other side of a rounding edge.
    const auto got = cache.read();
    std::int64_t written = 0;
    for (const auto byte : want) written += byte != 0xFF;
    EXPECT_LE(differ(got, want), written / 500) << "ratio " << ratio << ", of " << written;
    std::int64_t stray = 0;
    for (std::size_t i = 0; i < want.size(); ++i) stray += want[i] == 0xFF && got[i] != 0xFF;
    EXPECT_LE(stray, 20) << "bytes that no entry owns";
    EXPECT_EQ(cache.overrun(), 0);
  }
}

TEST_F(CacheKernels, OutputOperandOfManyHeads) {
  const TestLaunch launch;
  const std::int64_t tokens = 77, heads = 64, groups = 8, inputs = 8 * 512;
  const auto o = bf16s(tokens * heads * 512);
  const auto angles = floats(1000 * 64);
  std::vector<std::int64_t> positions;
  for (std::int64_t t = 0; t < tokens; ++t) positions.push_back(integer(0, 999));
  std::vector<std::uint8_t> want(static_cast<std::size_t>(tokens * groups * inputs));
  std::vector<float> scales(static_cast<std::size_t>(tokens * groups * inputs / 128));
  cpu::inverse_rope_quant({tokens, heads, groups, inputs, o.data(), angles.data(), positions.data(),
                           want.data(), scales.data()});
  DeviceArray<cpu::Bf16> in(o);
  DeviceArray<float> table(angles), out_scales(tokens * groups * inputs / 128);
  DeviceArray<std::int64_t> at(positions);
  DeviceArray<std::uint8_t> out(tokens * groups * inputs);
  run(cpu::InverseRopeQuant{tokens, heads, groups, inputs, in.data(), table.data(), at.data(),
                            out.data(), out_scales.data()},
      launch.get());
  EXPECT_EQ(differ(out.read(), want), 0);
  EXPECT_EQ(differ(out_scales.read(), scales), 0);
}

TEST_F(CacheKernels, NormsOfModelWidths) {
  const TestLaunch launch;
  for (const std::int64_t width : {512, 1024, 1536, 4096, 7168, 8200, 16384}) {
    const std::int64_t tokens = 19;
    const auto x = bf16s(tokens * width), weight = bf16s(width);
    std::vector<cpu::Bf16> want(static_cast<std::size_t>(tokens * width));
    cpu::rms_norm({tokens, width, x.data(), weight.data(), want.data()});
    DeviceArray<cpu::Bf16> in(x), w(weight);
    run(cpu::RmsNorm{tokens, width, in.data(), w.data(), in.data()}, launch.get());
    EXPECT_LE(worst_row(in.read(), want, width), 1e-3) << width;
    EXPECT_EQ(in.overrun(), 0);
  }
}

TEST_F(CacheKernels, WhatIsNotAlignedIsRefused) {
  const TestLaunch launch;
  cpu::InsertDsMla p;
  p.tokens = 1;
  p.pages = {nullptr, 37444, 64};
  EXPECT_NE(can_run(p, launch.get()), std::nullopt);
  p.pages.stride = 37440;
  EXPECT_EQ(can_run(p, launch.get()), std::nullopt);
  p.k = reinterpret_cast<const cpu::Bf16*>(8);
  EXPECT_NE(can_run(p, launch.get()), std::nullopt);
}

}  // namespace
}  // namespace warmgate::kernels::cuda
