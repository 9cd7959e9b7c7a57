// Quantised queries and gathered keys: the CPU kernels' bits.
#include "kernels/cuda/indexer/quant.h"

#include "kernels/cpu/rope.h"
#include "kernels/cuda/indexer/testing.h"

namespace warmgate::kernels::cuda {
namespace {

using cpu::IndexFormat;
constexpr IndexFormat kFormats[] = {IndexFormat::kFp8, IndexFormat::kMxfp4};

// Codes of NaN differ in their sign, which nobody reads.
std::vector<std::uint8_t> without_nan_signs(std::vector<std::uint8_t> codes, IndexFormat format) {
  for (auto& c : codes) {
    if (format == IndexFormat::kFp8 && (c & 0x7F) == 0x7F) c = 0x7F;
  }
  return codes;
}

TEST_F(IndexerTest, QueriesHaveTheBitsOfTheCpu) {
  TestLaunch launch(1 << 20);
  std::vector<float> cos_sin(512 * 64);
  cpu::fill_rope_table({512, 160000, true, 16, 32, 1, 65536, cos_sin.data()});
  const DeviceArray<float> angles(cos_sin);
  for (const IndexFormat format : kFormats) {
    for (const std::int64_t tokens : {1, 2, 7, 33, 70}) {
      const std::int64_t heads = below(2) == 0 ? 64 : 1 + below(9), rows = tokens * heads;
      const std::int64_t bytes = cpu::index_value_bytes(format);
      auto iq = bf16s(rows * 128), weights = bf16s(rows);
      for (std::int64_t r = 0; r < rows; ++r) {  // rows of all sizes, and of zeros
        const float size = std::ldexp(1.0F, static_cast<int>(below(60)) - 40);
        for (std::int64_t i = 0; i < 128; ++i) {
          auto& v = iq[static_cast<std::size_t>(r * 128 + i)];
          v = cpu::to_bf16(cpu::to_float(v) * (r % 11 == 3 ? 0.0F : size));
        }
        if (r % 13 == 5) {  // NaN does not count for the scale
          iq[static_cast<std::size_t>(r * 128 + below(128))] = below(2) == 0 ? 0x7FC1 : 0xFFC0;
        }
      }
      std::vector<std::int64_t> positions(static_cast<std::size_t>(tokens));
      for (auto& p : positions) p = below(512);
      std::vector<std::uint8_t> q(static_cast<std::size_t>(rows * bytes), 0xFF);
      std::vector<std::uint8_t> scales(static_cast<std::size_t>(rows * 4), 0xFF);
      std::vector<float> w(static_cast<std::size_t>(rows));
      cpu::IndexerQuant p{tokens,         heads,          format,           iq.data(),
                          weights.data(), cos_sin.data(), positions.data(), q.data(),
                          scales.data(),  w.data()};
      cpu::indexer_quant(p);
      const std::int64_t shift = below(2);  // an element: not aligned for wide accesses
      iq.insert(iq.begin(), static_cast<std::size_t>(shift), 0);
      const DeviceArray<cpu::Bf16> d_iq(iq), d_weights(weights);
      const DeviceArray<std::int64_t> d_positions(positions);
      const DeviceArray<std::uint8_t> d_q(rows * bytes), d_scales(rows * 4);
      const DeviceArray<float> d_w(rows);
      p = {tokens,
           heads,
           format,
           d_iq.data() + shift,
           d_weights.data(),
           angles.data(),
           d_positions.data(),
           d_q.data(),
           d_scales.data(),
           d_w.data()};
      ASSERT_FALSE(can_run(p, launch.get()));
      run(p, launch.get());
      ASSERT_EQ(
          first_difference(without_nan_signs(d_q.read(), format), without_nan_signs(q, format)), -1)
          << tokens << " tokens, " << heads << " heads";
      ASSERT_EQ(first_difference(d_scales.read(), scales), -1);
      ASSERT_EQ(first_difference(d_w.read(), w), -1);
      ASSERT_EQ(d_q.overrun() + d_scales.overrun() + d_w.overrun(), 0);
    }
  }
}

TEST_F(IndexerTest, GatheredKeysAreThePagesRows) {
  TestLaunch launch(1 << 20);
  for (const IndexFormat format : kFormats) {
    for (const std::int64_t requests : {1, 3, 64, 1500}) {
      const std::int64_t blocks = requests > 100 ? 1 : 4, rows = 64;
      KeyPages pages(format, requests * blocks + 1, rows, below(2) == 0 ? 192 : 4);
      for (auto& byte : pages.bytes) byte = static_cast<std::uint8_t>(below(256));
      auto table = shuffled(requests * blocks + 1);
      table[static_cast<std::size_t>(below(requests * blocks))] = -1;  // reads as page 0
      std::vector<std::int32_t> lens;
      std::int64_t total = 0;
      for (std::int64_t b = 0; b < requests; ++b) {
        lens.push_back(
            static_cast<std::int32_t>(below(3) == 0 ? below(8) : below(blocks * rows * 4 + 1)));
        total += lens.back() / 4;
      }
      const std::int64_t bytes = cpu::index_value_bytes(format);
      std::vector<std::uint8_t> values(static_cast<std::size_t>((total + 1) * bytes), 0xFF);
      std::vector<std::uint8_t> scales(static_cast<std::size_t>((total + 1) * 4), 0xFF);
      cpu::gather_indexer_keys({requests,
                                4,
                                format,
                                lens.data(),
                                pages.at(pages.bytes.data()),
                                {table.data(), blocks, rows},
                                values.data(),
                                scales.data()});
      const DeviceArray<std::uint8_t> d_pages(pages.bytes);
      const DeviceArray<std::int32_t> d_table(table), d_lens(lens);
      const DeviceArray<std::uint8_t> d_values((total + 1) * bytes), d_scales((total + 1) * 4);
      const cpu::GatherIndexerKeys p{requests,
                                     4,
                                     format,
                                     d_lens.data(),
                                     pages.at(d_pages.data()),
                                     {d_table.data(), blocks, rows},
                                     d_values.data(),
                                     d_scales.data()};
      ASSERT_FALSE(can_run(p, launch.get()));
      run(p, launch.get());
      ASSERT_EQ(first_difference(d_values.read(), values), -1) << requests << " requests";
      ASSERT_EQ(first_difference(d_scales.read(), scales), -1) << requests << " requests";
    }
  }
}

}  // namespace
}  // namespace warmgate::kernels::cuda
